/* Plots and line drawings as SVG: curves, points, and pictures made of segments, in a grid of panels.
 *
 *     plot *p = plot_create("Sag of a strip", "length, m", "sag, m");
 *     int ours = plot_series(p, "Toile", PLOT_LINE);
 *     plot_add(p, ours, 0.1, 0.02);
 *     status = plot_write(&p, 1, 1, "sag.svg", &error);
 *     plot_free(p);
 *
 * Every call takes a null plot, and memory that ran out is reported by plot_write: nothing needs a check in
 * between. */
#ifndef TOILE_PLOT_H
#define TOILE_PLOT_H

#include "error.h"

#include <stdbool.h>

typedef struct plot plot;

typedef enum plot_style { PLOT_LINE, PLOT_POINTS, PLOT_LINE_POINTS, PLOT_DASHED } plot_style;

/* Texts are copied; the labels may be null. */
plot *plot_create(const char *title, const char *x_label, const char *y_label);
void plot_free(plot *p);

/* Logarithmic axes: what is not positive is left out. */
void plot_log(plot *p, bool x, bool y);
/* NaN leaves a bound to the data. */
void plot_limits(plot *p, double x_min, double x_max, double y_min, double y_max);
/* The same scale in x and y and no axes: for drawings. */
void plot_equal(plot *p);

/* Begins a curve and returns its number. Colours go by number; a null name keeps it out of the legend. */
int plot_series(plot *p, const char *name, plot_style style);
/* What is not finite leaves a gap. */
void plot_add(plot *p, int series, double x, double y);
/* A line of a drawing, or with both ends the same a dot; colour 0xRRGGBB, width in pixels. */
void plot_segment(plot *p, double x0, double y0, double x1, double y1, unsigned colour, double width);

/* Colours that are told apart side by side; after so many numbers they come again. */
enum { PLOT_COLOURS = 12 };
unsigned plot_colour(int number);

/* Panels row by row, `columns` in a row. */
toile_status plot_write(plot *const *panels, int count, int columns, const char *path, toile_error *error);

#endif
