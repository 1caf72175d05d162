/* The experiments, each in the file of its paper's topic. A new one: its function here, its line in
 * command_experiment.c. */
#ifndef TOILE_EXPERIMENTS_H
#define TOILE_EXPERIMENTS_H

#include "experiment.h"

bool experiment_bw_bend(experiment *e);
bool experiment_bw_resolution(experiment *e);
bool experiment_decompose(experiment *e);
bool experiment_fb_stability(experiment *e);
bool experiment_aimex(experiment *e);
/* CPU time of aimex with bends explicit over all implicit: mean over those of the first so many random sets in which stretch and
 * shear stay implicit (thesis Table 4.1), each for so many seconds. NaN if there is none. */
double experiment_aimex_time(int sets, double seconds);
bool experiment_aimex_stability(experiment *e);
bool experiment_jiang_rk4(experiment *e);
bool experiment_preconditioners(experiment *e);
bool experiment_projected_damping(experiment *e);
bool experiment_ye_table1(experiment *e);
bool experiment_ye_table2(experiment *e);

#endif
