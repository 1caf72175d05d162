/* Rigid poses and keyframes: where a collider or a pin is at a frame.
 *
 * Angles are in degrees, about x, then y, then z (the "XYZ Euler" of 3D programs). Between keys the angles
 * themselves are interpolated, so a key at 720 degrees is two turns. Before the first key and after the last
 * one things stand still. */
#ifndef TOILE_MOTION_H
#define TOILE_MOTION_H

#include <stdbool.h>

typedef struct toile_pose {
    double position[3];
    double rotation[4];             /* unit quaternion w, x, y, z */
} toile_pose;

typedef struct toile_key {
    double frame;
    double origin[3];               /* m */
    double rotate[3];               /* degrees */
} toile_key;

typedef struct toile_motion {
    toile_key rest;                 /* where it is without keys; its frame means nothing */
    int key_count;
    toile_key *keys;                /* frames increase */
    bool smooth;                    /* eases in and out of every key; else in straight lines */
} toile_motion;

toile_pose toile_motion_at(const toile_motion *motion, double frame);

toile_pose toile_pose_from(const double origin[3], const double rotate[3]);
/* First `inner`, then `outer`. */
toile_pose toile_pose_join(const toile_pose *outer, const toile_pose *inner);
toile_pose toile_pose_inverse(const toile_pose *pose);
void toile_pose_turn(const toile_pose *pose, const double vector[3], double turned[3]);  /* rotation alone */
void toile_pose_apply(const toile_pose *pose, const double point[3], double moved[3]);

#endif
