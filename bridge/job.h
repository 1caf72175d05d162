/* Jobs as the scene loader sees them: the job's meshes take the place of OBJ files. The calls that write a
 * job are in toile.h. */
#ifndef TOILE_JOB_H
#define TOILE_JOB_H

#include "job_hdf5.h"
#include "obj.h"
#include "scene.h"

/* A mesh of a job as if it had been read from a file; its hash is the mesh's checksum. Its form is checked,
 * its surface is not: the world does that, and names vertices as the job's author counts them. */
toile_status toile_job_read_obj(toile_job_file *file, toile_memory *memory, const char *name, toile_obj *obj,
                                toile_error *error);

/* Writes the scene at scene_path, after sets, with every mesh file that it names, as one job. */
toile_status toile_job_pack(const char *scene_path, const char *const *sets, int set_count,
                            const char *job_path, toile_error *error);

#endif
