#include "motion.h"

#include <math.h>
#include <string.h>

#define PI 3.14159265358979323846

/* Right angles and their halves come out exact: a sheet turned by 90 degrees has axes without dust. */
static void sine_cosine(double degrees, double *sine, double *cosine) {
    double turn = fmod(degrees, 720.0);
    *sine = sin(turn * PI / 180.0);
    *cosine = cos(turn * PI / 180.0);
    if (fmod(turn, 90.0) == 0) {
        *sine = round(*sine);
        *cosine = round(*cosine);
    } else if (fmod(turn, 45.0) == 0) {
        *sine = copysign(sqrt(0.5), *sine);
        *cosine = copysign(sqrt(0.5), *cosine);
    }
}

static void multiply(const double a[4], const double b[4], double product[4]) {
    double w = a[0] * b[0] - a[1] * b[1] - a[2] * b[2] - a[3] * b[3];
    double x = a[0] * b[1] + a[1] * b[0] + a[2] * b[3] - a[3] * b[2];
    double y = a[0] * b[2] - a[1] * b[3] + a[2] * b[0] + a[3] * b[1];
    double z = a[0] * b[3] + a[1] * b[2] - a[2] * b[1] + a[3] * b[0];
    product[0] = w, product[1] = x, product[2] = y, product[3] = z;
}

toile_pose toile_pose_from(const double origin[3], const double rotate[3]) {
    toile_pose pose = {{origin[0], origin[1], origin[2]}, {1, 0, 0, 0}};
    for (int axis = 0; axis < 3; axis++) {
        double about[4] = {0, 0, 0, 0};
        sine_cosine(rotate[axis] / 2, &about[axis + 1], &about[0]);
        multiply(about, pose.rotation, pose.rotation);
    }
    return pose;
}

void toile_pose_turn(const toile_pose *pose, const double v[3], double turned[3]) {
    /* As a matrix rather than as two products: right angles then stay exact up to the rounding of sqrt(1/2).
     */
    double w = pose->rotation[0], x = pose->rotation[1], y = pose->rotation[2], z = pose->rotation[3];
    double m[3][3] = {{1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)},
                      {2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)},
                      {2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)}};
    double result[3];
    for (int i = 0; i < 3; i++)
        result[i] = m[i][0] * v[0] + m[i][1] * v[1] + m[i][2] * v[2];
    memcpy(turned, result, sizeof result);
}

void toile_pose_apply(const toile_pose *pose, const double point[3], double moved[3]) {
    toile_pose_turn(pose, point, moved);
    for (int i = 0; i < 3; i++)
        moved[i] += pose->position[i];
}

toile_pose toile_pose_join(const toile_pose *outer, const toile_pose *inner) {
    toile_pose both;
    toile_pose_apply(outer, inner->position, both.position);
    multiply(outer->rotation, inner->rotation, both.rotation);
    return both;
}

toile_pose toile_pose_inverse(const toile_pose *pose) {
    toile_pose inverse = {{0, 0, 0},
                          {pose->rotation[0], -pose->rotation[1], -pose->rotation[2], -pose->rotation[3]}};
    double back[3];
    toile_pose_turn(&inverse, pose->position, back);
    for (int i = 0; i < 3; i++)
        inverse.position[i] = -back[i];
    return inverse;
}

toile_pose toile_motion_at(const toile_motion *motion, double frame) {
    if (motion->key_count == 0)
        return toile_pose_from(motion->rest.origin, motion->rest.rotate);

    /* The last key that is not after the frame. */
    int low = 0, high = motion->key_count;
    while (high - low > 1) {
        int middle = low + (high - low) / 2;
        if (motion->keys[middle].frame <= frame)
            low = middle;
        else
            high = middle;
    }
    const toile_key *a = &motion->keys[low];
    if (frame <= a->frame || low + 1 == motion->key_count)
        return toile_pose_from(a->origin, a->rotate);

    const toile_key *b = a + 1;
    double t = (frame - a->frame) / (b->frame - a->frame);
    if (motion->smooth)
        t = t * t * (3 - 2 * t);
    double origin[3], rotate[3];
    for (int i = 0; i < 3; i++) {
        origin[i] = a->origin[i] + t * (b->origin[i] - a->origin[i]);
        rotate[i] = a->rotate[i] + t * (b->rotate[i] - a->rotate[i]);
    }
    return toile_pose_from(origin, rotate);
}
