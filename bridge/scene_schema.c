/* The form of a scene file as data: which keys an object has, what their values are, what they mean. One walk
 * over the tables checks a scene (toile_scene_check_form), another writes them as JSON Schema
 * (toile_scene_schema), so that the two cannot differ. What needs more than the form, such as names that must
 * exist, is in the files that load things. */
#include "scene_internal.h"

#include "settings.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct rule rule;

typedef struct member {
    const char *key;
    const rule *rule;
    bool required;
    const char *standard;           /* default as JSON, or null */
    const char *meaning;
} member;

/* What an object's keys demand of each other. The keys end with a null; one that ends with [] counts if it is a list. */
typedef enum demand_kind { EXACTLY_ONE, AT_LEAST_ONE, NOT_TOGETHER, FIRST_NEEDS_ONE } demand_kind;
typedef struct demand {
    demand_kind kind;
    const char *keys[7];
} demand;

typedef enum form {
    NUMBER,
    INTEGER,
    BOOLEAN,
    TEXT,                           /* any */
    NAME,                           /* text that can be a name in a cache */
    FILE_NAME,
    CHOICE_OF,                      /* text of a list */
    LIST,
    OBJECT,                         /* known keys */
    MAP,                            /* names as keys */
    EITHER,                         /* one of several rules, told apart by the kind of value */
    BY_SHAPE,                       /* one of several objects, told apart by their key "shape" */
} form;

struct rule {
    form form;
    const char *says;               /* what is allowed, for messages; null: made from what follows */
    double min, max;                /* of a number */
    bool above;                     /* greater than min, not equal */
    const char *unit;
    size_t least, most;             /* elements of a list */
    const rule *item;               /* of a list or map */
    const char *const *choices;     /* null-terminated */
    const member *members;          /* of an object; the last has a null key */
    const toile_field *(*fields)(int *count); /* more members, from a table of settings */
    const demand *demands;          /* the last has a null first key */
    const rule *const *options;     /* of EITHER and BY_SHAPE, null-terminated */
};

enum { NAME_MOST = 128, KEYS_MOST = 128 };

/* ---- numbers and lists ---- */

#define LENGTHS 1e4                 /* m; the largest thing */
#define PLACES 1e5                  /* m; the farthest place */

#define NUMBER_RULE(id, low, high, text) \
    static const rule id = {.form = NUMBER, .min = low, .max = high, .says = text}
#define POSITIVE_RULE(id, high, text) \
    static const rule id = {.form = NUMBER, .min = 0, .max = high, .above = true, .says = text}
#define INTEGER_RULE(id, low, high, text) \
    static const rule id = {.form = INTEGER, .min = low, .max = high, .says = text}
#define LIST_RULE(id, fewest, most_, of, text) \
    static const rule id = {.form = LIST, .least = fewest, .most = most_, .item = &of, .says = text}
#define CHOICE_RULE(id, ...) \
    static const rule id = {.form = CHOICE_OF, .choices = (const char *const[]){__VA_ARGS__, NULL}}

static const rule TEXT_RULE = {.form = TEXT, .says = "use a text in quotes"};
static const rule BOOLEAN_RULE = {.form = BOOLEAN, .says = "use true or false"};
static const rule NAME_RULE = {
    .form = NAME,
    .says = "a name has 1 to 128 characters, none of them / or a control character",
};
static const rule FILE_RULE = {
    .form = FILE_NAME,
    .says = "use a file name, seen from the scene file's folder",
};

INTEGER_RULE(VERSION, 1, 1, "this program reads scene format 1");
POSITIVE_RULE(FPS, 1e4, "frames per second are greater than 0 and at most 10000");
INTEGER_RULE(FRAME, -1e6, 1e6, "a frame is a whole number from -1000000 to 1000000");
LIST_RULE(FRAMES, 2, 2, FRAME, "use [first, last]");

INTEGER_RULE(COUNT, 2, 4096, "a resolution is a whole number of particles, 2 to 4096");
LIST_RULE(COUNTS, 2, 2, COUNT, "use [along u, along v]");
static const rule RESOLUTION = {
    .form = EITHER,
    .says = "use the number of particles along the longer side, or [along u, along v]",
    .options = (const rule *const[]){&COUNT, &COUNTS, NULL},
};

POSITIVE_RULE(SIZE, LENGTHS, "a size is in metres and greater than 0");
LIST_RULE(SIZES_2, 2, 2, SIZE, "use [along u, along v] in metres");
LIST_RULE(SIZES_3, 3, 3, SIZE, "use [x, y, z] in metres");
POSITIVE_RULE(SCALE, 1e6, "a scale is greater than 0");
NUMBER_RULE(REST_SCALE, 0.01, 100, "a rest scale is 0.01 to 100");
LIST_RULE(REST_SCALES, 2, 2, REST_SCALE, "use [along u, along v]");

NUMBER_RULE(COORDINATE, -PLACES, PLACES, "a coordinate is in metres, -100000 to 100000");
LIST_RULE(POINT, 3, 3, COORDINATE, "use [x, y, z] in metres");
LIST_RULE(BOX_CORNERS, 2, 2, POINT, "use [[x, y, z], [x, y, z]]: the smallest and the largest corner");
NUMBER_RULE(ANGLE, -1e6, 1e6, "an angle is in degrees, -1000000 to 1000000");
LIST_RULE(ANGLES, 3, 3, ANGLE, "use degrees about [x, y, z]");
NUMBER_RULE(THICKNESS, 0, 1, "a thickness is in metres, 0 to 1");
NUMBER_RULE(FRICTION, 0, 100, "a friction coefficient is 0 to 100");

/* ---- places and motions ---- */

static const rule PLACE = {
    .form = OBJECT,
    .says = "use {\"origin\": [x, y, z], \"rotate\": [x, y, z]}",
    .members = (const member[]){
        {"origin", &POINT, false, "[0, 0, 0]", "Where the thing's own origin is, in metres"},
        {"rotate", &ANGLES, false, "[0, 0, 0]",
         "Degrees about x, then y, then z, before it is moved to its origin"},
        {0}},
};

NUMBER_RULE(FLAT, -1000, 1000, "a place in a panel is in metres, -1000 to 1000");
LIST_RULE(FLAT_POINT, 2, 2, FLAT, "use [x, y] in metres");
NUMBER_RULE(BEND_RADIUS, -1000, 1000, "a radius is in metres, -1000 to 1000; 0 is flat");
static const rule BEND = {
    .form = OBJECT,
    .says = "use {\"radius\": 0.2, \"axis\": 90, \"at\": [x, y]}",
    .members = (const member[]){
        {"radius", &BEND_RADIUS, true, NULL,
         "Of the cylinder it is bent around, in metres; positive curls away from the side that z points to"},
        {"axis", &ANGLE, false, "0", "Direction of the cylinder in the panel, degrees from its x axis"},
        {"at", &FLAT_POINT, false, "[0, 0]", "Point of the panel that stays where it is"},
        {0}},
};
static const rule PANEL_PLACE = {
    .form = OBJECT,
    .says = "use {\"origin\": [x, y, z], \"rotate\": [x, y, z], \"bend\": {...}}",
    .members = (const member[]){
        {"origin", &POINT, false, "[0, 0, 0]", "Where the panel's own origin is, in metres"},
        {"rotate", &ANGLES, false, "[0, 0, 0]",
         "Degrees about x, then y, then z, before it is moved to its origin"},
        {"bend", &BEND, false, NULL, "The panel rolled around a body at the start, before it is turned; it rests flat"},
        {0}},
};

NUMBER_RULE(KEY_FRAME, -1e6, 1e6, "a frame is a number from -1000000 to 1000000");
CHOICE_RULE(INTERPOLATION, "linear", "smooth");

static const rule COLLIDER_KEY = {
    .form = OBJECT,
    .says = "use {\"frame\": 1, \"origin\": [x, y, z], \"rotate\": [x, y, z]}",
    .members = (const member[]){
        {"frame", &KEY_FRAME, true, NULL, "Frame of this key; frames increase from key to key"},
        {"origin", &POINT, false, NULL, "Where the collider is at this frame, in metres; else as in place"},
        {"rotate", &ANGLES, false, NULL, "Degrees about x, then y, then z at this frame; else as in place"},
        {0}},
};
LIST_RULE(COLLIDER_KEYS, 1, 100000, COLLIDER_KEY, NULL);
static const rule COLLIDER_MOTION = {
    .form = OBJECT,
    .members = (const member[]){
        {"keys", &COLLIDER_KEYS, true, NULL,
         "Poses at frames; before the first and after the last it stands still"},
        {"interpolation", &INTERPOLATION, false, "\"linear\"",
         "linear: in straight lines; smooth: eases in and out of every key"},
        {0}},
};

static const rule PIN_KEY = {
    .form = OBJECT,
    .says = "use {\"frame\": 1, \"translate\": [x, y, z], \"rotate\": [x, y, z]}",
    .members = (const member[]){
        {"frame", &KEY_FRAME, true, NULL, "Frame of this key; frames increase from key to key"},
        {"translate", &POINT, false, "[0, 0, 0]", "How far from the start at this frame, in metres"},
        {"rotate", &ANGLES, false, "[0, 0, 0]",
         "Degrees about x, then y, then z from the start at this frame"},
        {0}},
};
LIST_RULE(PIN_KEYS, 1, 100000, PIN_KEY, NULL);
static const rule PIN_MOTION = {
    .form = OBJECT,
    .members = (const member[]){
        {"keys", &PIN_KEYS, true, NULL,
         "Moves at frames; before the first and after the last it stands still"},
        {"about", &POINT, false, NULL,
         "Point that rotations are about; else the middle of the box around the pin"},
        {"interpolation", &INTERPOLATION, false, "\"linear\"",
         "linear: in straight lines; smooth: eases in and out of every key"},
        {0}},
};

/* ---- fabrics and garments ---- */

static const rule FABRIC_OBJECT = {
    .form = OBJECT,
    .says = "use {\"base\": \"cotton\", ...} with any property of `toile fabrics`",
    .members = (const member[]){
        {"base", &NAME_RULE, false, NULL, "Fabric of `toile fabrics` that gives what is not written here"},
        {0}},
    .fields = toile_fabric_fields,
};
static const rule FABRICS = {.form = MAP, .item = &FABRIC_OBJECT, .says = "use {\"name\": {properties}}"};
static const rule FABRIC = {
    .form = EITHER,
    .says = "use the name of a fabric, or an object with its properties",
    .options = (const rule *const[]){&NAME_RULE, &FABRIC_OBJECT, NULL},
};

CHOICE_RULE(DIAGONALS, "alternate", "left", "right");
static const rule GRID = {
    .form = OBJECT,
    .says = "use {\"size\": [1, 1]}",
    .members = (const member[]){
        {"size", &SIZES_2, true, NULL, "Length along u (warp, x) and v (weft, y), in metres"},
        {"resolution", &RESOLUTION, false, NULL,
         "Particles along the longer side, or along u and v; else the scene's"},
        {"diagonals", &DIAGONALS, false, "\"alternate\"", "How its squares are cut into triangles"},
        {0}},
};
static const rule PANEL = {
    .form = OBJECT,
    .members = (const member[]){
        {"fabric", &FABRIC, false, NULL, "Else the garment's"},
        {"scale", &REST_SCALES, false, "[1, 1]", "Rest length over the length in the file, along u and v"},
        {0}},
};
static const rule PANEL_MAP = {.form = MAP, .item = &PANEL, .says = "use {\"panel name\": {\"fabric\": ...}}"};

/* ---- shaping; seams of patterns are below ---- */

static const rule SELECT; /* among the pins */
INTEGER_RULE(VERTEX, 0, 2147483647, "a vertex is a whole number, counted from 0");
LIST_RULE(VERTEX_PAIR, 2, 2, VERTEX, "use [vertex, vertex]");
LIST_RULE(VERTEX_PAIRS, 1, 100000000, VERTEX_PAIR, "use a list of pairs [vertex, vertex], counted from 0");
NUMBER_RULE(FOLD_ANGLE, -180, 180, "an angle is in degrees, -180 to 180");
POSITIVE_RULE(STRENGTH, 1e6, "a strength is in N/m, greater than 0 and at most 1000000");
/* clang-format off */
#define SEAM_MEMBERS                                                                                                    \
    {"name", &NAME_RULE, false, NULL, "For messages"},                                                                  \
    {"strength", &STRENGTH, false, "100", "Largest pull while it is sewn, in N per metre"},                             \
    {"fold_angle", &FOLD_ANGLE, false, "0", "Angle at rest across it, degrees: 0 flat, positive folds right sides together"}, \
    {"frames", &FRAMES, false, NULL,                                                                                    \
     "First and last frame of sewing; else the first second. With \"settle\" they count from its beginning"},           \
    {"release", &FRAME, false, NULL, "Frame at which it comes apart; else it stays"}
/* clang-format on */
static const rule SEWN = {
    .form = OBJECT,
    .says = "use {\"pairs\": [[0, 10], ...]} or {\"loose_edges\": true}",
    .members = (const member[]){
        {"pairs", &VERTEX_PAIRS, false, NULL, "Vertices that become one, two by two, counted from 0"},
        {"loose_edges", &BOOLEAN_RULE, false, NULL, "The edges of the OBJ file that no face has (l): sewing edges in Blender"},
        SEAM_MEMBERS,
        {0}},
    .demands = (const demand[]){{EXACTLY_ONE, {"pairs", "loose_edges"}}, {0}},
};
LIST_RULE(SEWING, 0, 100000, SEWN, "use a list of at most 100000 seams");

static const rule NUMBER_KEY = {
    .form = OBJECT,
    .says = "use {\"frame\": 1, \"value\": 0}",
    .members = (const member[]){
        {"frame", &KEY_FRAME, true, NULL, "Frame of this key; frames increase from key to key"},
        {"value", &ANGLE, true, NULL, "Value at this frame; straight lines between keys"},
        {0}},
};
LIST_RULE(NUMBER_KEYS, 1, 100000, NUMBER_KEY, NULL);
NUMBER_RULE(FACTOR, 0.001, 1000, "a factor is 0.001 to 1000; 1 changes nothing");
LIST_RULE(FACTORS, 1, 100000000, FACTOR, "use a list of factors, one for each vertex");
static const rule FABRIC_MAP = {
    .form = OBJECT,
    .says = "use {\"property\": \"density\", \"values\": [...]}",
    .members = (const member[]){
        {"property", &NAME_RULE, true, NULL, "A property of the fabric, or scale_u, scale_v: rest scales"},
        {"values", &FACTORS, false, NULL, "Factor at every vertex"},
        {"select", &SELECT, false, NULL, "Vertices that have the factor \"value\"; the others have 1"},
        {"value", &FACTOR, false, NULL, "With select"},
        {"keys", &NUMBER_KEYS, false, NULL, "How much of the map acts at frames: 0 none, 1 all of it. It is stepped frame by frame"},
        {0}},
    .demands = (const demand[]){{EXACTLY_ONE, {"values", "select"}}, {FIRST_NEEDS_ONE, {"select", "value"}},
                                {FIRST_NEEDS_ONE, {"value", "select"}}, {0}},
};
LIST_RULE(MAPS, 0, 1000, FABRIC_MAP, "use a list of at most 1000 maps");
static const rule CREASE = {
    .form = OBJECT,
    .says = "use {\"edges\": [[0, 1], ...], \"angle\": 90}",
    .members = (const member[]){
        {"edges", &VERTEX_PAIRS, false, NULL, "Pairs of neighbouring vertices"},
        {"select", &SELECT, false, NULL, "All edges between selected vertices"},
        {"angle", &FOLD_ANGLE, true, NULL, "At rest, degrees: 0 flat, positive folds right sides together"},
        {0}},
    .demands = (const demand[]){{EXACTLY_ONE, {"edges", "select"}}, {0}},
};
LIST_RULE(CREASES, 0, 10000, CREASE, "use a list of at most 10000 creases");
POSITIVE_RULE(BAND_STIFFNESS, 1e6, "a band's stiffness is in N, greater than 0 and at most 1000000");
static const rule BAND = {
    .form = OBJECT,
    .says = "use {\"select\": {\"edges\": [\"v1\"]}, \"scale\": 0.8}",
    .members = (const member[]){
        {"edges", &VERTEX_PAIRS, false, NULL, "Pairs of neighbouring vertices"},
        {"select", &SELECT, false, NULL, "All edges between selected vertices"},
        {"stiffness", &BAND_STIFFNESS, false, "20", "N per unit of strain"},
        {"scale", &REST_SCALE, false, "1", "Rest length relative to the cloth it is sewn to"},
        {0}},
    .demands = (const demand[]){{EXACTLY_ONE, {"edges", "select"}}, {0}},
};
LIST_RULE(BANDS, 0, 10000, BAND, "use a list of at most 10000 elastic bands");
NUMBER_RULE(PASCALS, -1e6, 1e6, "a pressure is in N/m^2, -1000000 to 1000000");
static const rule PRESSURE_OF = {
    .form = OBJECT,
    .says = "use {\"value\": 100}",
    .members = (const member[]){
        {"value", &PASCALS, false, NULL, "In N/m^2, on the back of the cloth: positive pushes towards the right side"},
        {"keys", &NUMBER_KEYS, false, NULL, "Values at frames, in N/m^2"},
        {"panel", &NAME_RULE, false, NULL, "Else on all of them"},
        {0}},
    .demands = (const demand[]){{EXACTLY_ONE, {"value", "keys"}}, {0}},
};
LIST_RULE(PRESSURES, 0, 1000, PRESSURE_OF, "use a list, one for each panel or one for all");
/* clang-format off */
#define SHAPING_MEMBERS                                                                                                 \
    {"sewing", &SEWING, false, NULL, "Pairs of vertices that are pulled together and become one"},                      \
    {"maps", &MAPS, false, NULL, "Factors on properties of the fabric from vertex to vertex"},                          \
    {"creases", &CREASES, false, NULL, "Edges that are bent at rest: pleats, creases"},                                 \
    {"elastic", &BANDS, false, NULL, "Elastic along edges"},                                                            \
    {"pressure", &PRESSURES, false, NULL, "What pushes on its panels"}
/* clang-format on */

/* ---- sewing patterns ---- */

LIST_RULE(CONTROLS, 1, 2, FLAT_POINT, "use one point for a quadratic Bezier, two for a cubic one");
LIST_RULE(THROUGH, 1, TOILE_PATTERN_EDGES, FLAT_POINT, "use a list of points: 1 to 100000");
static const rule ARC = {
    .form = OBJECT,
    .says = "use {\"radius\": 0.1}",
    .members = (const member[]){
        {"radius", &SIZE, true, NULL, "In metres; at least half the distance of the ends"},
        {"large", &BOOLEAN_RULE, false, "false", "Whether it takes the longer way around the circle"},
        {"clockwise", &BOOLEAN_RULE, false, "false", "Whether it runs clockwise"},
        {0}},
};
static const rule OUTLINE_EDGE = {
    .form = OBJECT,
    .says = "use {\"from\": [x, y]}",
    .members = (const member[]){
        {"from", &FLAT_POINT, true, NULL, "Where it begins, in metres; it ends where the next one begins"},
        {"control", &CONTROLS, false, NULL, "Control points of a Bezier curve"},
        {"arc", &ARC, false, NULL, "An arc of a circle"},
        {"through", &THROUGH, false, NULL, "Points between its ends, in metres, that are joined by straight lines"},
        {"name", &NAME_RULE, false, NULL, "For seams and pins; the first of this name in the panel counts"},
        {"edge_length", &SIZE, false, NULL, "Finer along this edge, in metres"},
        {0}},
    .demands = (const demand[]){{NOT_TOGETHER, {"control", "arc", "through"}}, {0}},
};
LIST_RULE(OUTLINE, 2, TOILE_PATTERN_EDGES, OUTLINE_EDGE, "use a list of edges that goes around: 2 to 100000");
LIST_RULE(HOLES, 0, 1000, OUTLINE, "use a list of at most 1000 outlines");
static const rule FINER_AREA = {
    .form = OBJECT,
    .says = "use {\"center\": [x, y], \"radius\": 0.05, \"edge_length\": 0.003}",
    .members = (const member[]){
        {"center", &FLAT_POINT, true, NULL, "In the panel, in metres"},
        {"radius", &SIZE, true, NULL, "In metres"},
        {"edge_length", &SIZE, true, NULL, "In metres"},
        {0}},
};
LIST_RULE(FINER_AREAS, 0, 64, FINER_AREA, "use a list of at most 64 circles");
static const rule CUT_PANEL = {
    .form = OBJECT,
    .says = "use {\"name\": ..., \"outline\": [...]}",
    .members = (const member[]){
        {"name", &NAME_RULE, true, NULL, "Unique among the garment's panels"},
        {"outline", &OUTLINE, true, NULL, "Its edges, counter-clockwise seen from the right side of the cloth"},
        {"holes", &HOLES, false, NULL, "Outlines of holes; their edges are counted on after those of the outline"},
        {"edge_length", &SIZE, false, NULL, "Length of the mesh's edges, in metres; else the garment's"},
        {"finer", &FINER_AREAS, false, NULL, "Circles in which edges are shorter"},
        {"grain", &ANGLE, false, "0", "Direction of the warp, degrees from the panel's x axis"},
        {"fabric", &FABRIC, false, NULL, "Else the garment's"},
        {"scale", &REST_SCALES, false, "[1, 1]", "Rest length over the length as cut, along warp and weft"},
        {"place", &PANEL_PLACE, false, NULL, "Where it starts: its plane is the xy plane, its right side faces z"},
        {0}},
};
LIST_RULE(PANEL_LIST, 1, TOILE_PATTERN_PANELS, CUT_PANEL, "use a list of 1 to 20000 panels");
static const rule PANELS = {
    .form = EITHER,
    .says = "use a list of panels with outlines or, for a mesh, {\"panel name\": {\"fabric\": ...}}",
    .options = (const rule *const[]){&PANEL_LIST, &PANEL_MAP, NULL},
};

INTEGER_RULE(EDGE_NUMBER, 0, 2147483647, "an edge is its name or its number, counted from 0");
static const rule EDGE_OF_PANEL = {
    .form = EITHER,
    .says = "an edge is its name or its number, counted from 0",
    .options = (const rule *const[]){&NAME_RULE, &EDGE_NUMBER, NULL},
};
static const rule SEAM_SIDE = {
    .form = OBJECT,
    .says = "use {\"panel\": ..., \"edge\": ...}",
    .members = (const member[]){
        {"panel", &NAME_RULE, true, NULL, "Name of the panel"},
        {"edge", &EDGE_OF_PANEL, true, NULL, "Name or number of its edge"},
        {"reverse", &BOOLEAN_RULE, false, "false", "Walked against the direction of the outline"},
        {0}},
};
LIST_RULE(SEAM_SIDES, 1, 10000, SEAM_SIDE, "use a list of edges");
static const rule SEAM = {
    .form = OBJECT,
    .says = "use {\"a\": [{\"panel\": ..., \"edge\": ...}], \"b\": [...]}",
    .members = (const member[]){
        {"a", &SEAM_SIDES, true, NULL, "Edges of one side, one after the other"},
        {"b", &SEAM_SIDES, true, NULL, "Edges of the other side; both begin at the same end. What is longer is gathered"},
        SEAM_MEMBERS,
        {0}},
};
LIST_RULE(SEAMS, 0, 100000, SEAM, "use a list of at most 100000 seams");
CHOICE_RULE(UV, "file", "flat");
CHOICE_RULE(PANELS_FROM, "names", "uv_islands");
INTEGER_RULE(SUBDIVIDE, 0, 4, "a mesh is subdivided 0 to 4 times, each of which makes four faces of one");
CHOICE_RULE(UP, "y", "z");
NUMBER_RULE(FRAME_OFFSET, -1e6, 1e6, "an offset is a number of frames, -1000000 to 1000000");
static const rule OBJECT_RULE = {.form = TEXT, .says = "use the path of an object in the archive, as in \"/body/mesh\""};
/* clang-format off */
#define ARCHIVE_MEMBERS                                                                                     \
    {"object", &OBJECT_RULE, false, NULL,                                                                   \
     "Path in the archive of a mesh, or of what is above meshes; else all of them"},                        \
    {"up", &UP, false, "\"y\"", "Upward axis of the archive, turned to z; Alembic says y"},                 \
    {"frame_offset", &FRAME_OFFSET, false, "0", "Frames added to the scene's: frame F is read at (F + offset) / fps seconds"}
#define ARCHIVE_DEMANDS                                                                                     \
    {FIRST_NEEDS_ONE, {"object", "abc"}}, {FIRST_NEEDS_ONE, {"up", "abc"}}, {FIRST_NEEDS_ONE, {"frame_offset", "abc"}}
/* clang-format on */
INTEGER_RULE(LAYER, -1000, 1000, "a layer is a whole number from -1000 to 1000");
static const rule GARMENT = {
    .form = OBJECT,
    .says = "use {\"name\": ..., \"grid\": ...}",
    .members = (const member[]){
        {"name", &NAME_RULE, false, NULL, "Unique among garments; else garment_0, garment_1, ..."},
        {"fabric", &FABRIC, false, NULL,
         "Name of a fabric, or its properties; else the defaults of `toile fabrics`"},
        {"grid", &GRID, false, NULL, "A rectangle, centred on its origin in its xy plane"},
        {"obj", &FILE_RULE, false, NULL,
         "A mesh: OBJ file of triangles and quads whose groups are the panels"},
        {"mesh", &NAME_RULE, false, NULL, "A mesh of the job"},
        {"abc", &FILE_RULE, false, NULL,
         "A mesh: Alembic archive at the first frame; its face sets are the panels, its faces do not change"},
        ARCHIVE_MEMBERS,
        {"uv", &UV, false, "\"file\"",
         "Material coordinates. file: the vt of the OBJ, in metres; flat: each panel is flat in the file"},
        {"uv_scale", &SCALE, false, "1", "Factor on material coordinates"},
        {"scale", &SCALE, false, "1", "Factor on the file's positions; 0.01 if they are in centimetres"},
        {"subdivide", &SUBDIVIDE, false, "0",
         "How many times every face is cut into four at the middles of its edges: the resolution of a mesh. "
         "Vertices of the file keep their numbers; pins by box or sphere hold those between them too"},
        {"panels", &PANELS, false, NULL,
         "A sewing pattern: list of panels that are cut. Of a mesh: fabrics and rest scales of panels that differ from the "
         "garment's"},
        {"panels_from", &PANELS_FROM, false, "\"names\"",
         "Panels of a mesh. names: its groups, objects, materials or face sets; uv_islands: the pieces of its UV map, panel_1, panel_2, "
         "... in the order of their first faces"},
        {"seams", &SEAMS, false, NULL, "What joins the edges of the panels"},
        {"edge_length", &SIZE, false, "0.01", "Length of the mesh's edges in panels that give none, in metres"},
        {"keep_start_angles", &BOOLEAN_RULE, false, "false",
         "Whether the folds of the file are at rest; else flat is"},
        SHAPING_MEMBERS,
        {"place", &PLACE, false, NULL, "Where it starts"},
        {"layer", &LAYER, false, "0", "Garments of a higher layer lie over those of lower ones: tangled ones are pulled to their sides"},
        {0}},
    .demands = (const demand[]){
        {EXACTLY_ONE, {"grid", "obj", "abc", "mesh", "panels[]"}},
        {FIRST_NEEDS_ONE, {"uv", "obj", "abc", "mesh"}},
        {FIRST_NEEDS_ONE, {"uv_scale", "obj", "abc", "mesh"}},
        {FIRST_NEEDS_ONE, {"scale", "obj", "abc", "mesh"}},
        {FIRST_NEEDS_ONE, {"subdivide", "obj", "abc", "mesh"}},
        {FIRST_NEEDS_ONE, {"panels", "obj", "abc", "mesh", "panels[]"}},
        {FIRST_NEEDS_ONE, {"panels_from", "obj", "abc", "mesh"}},
        {FIRST_NEEDS_ONE, {"seams", "panels[]"}},
        {FIRST_NEEDS_ONE, {"edge_length", "panels[]"}},
        {FIRST_NEEDS_ONE, {"keep_start_angles", "obj", "abc", "mesh"}},
        ARCHIVE_DEMANDS,
        {0}},
};
LIST_RULE(GARMENTS, 1, 1000, GARMENT, "use a list of 1 to 1000 garments");

/* ---- colliders ---- */

CHOICE_RULE(SHAPE_sphere, "sphere");
CHOICE_RULE(SHAPE_box, "box");
CHOICE_RULE(SHAPE_capsule, "capsule");
CHOICE_RULE(SHAPE_cylinder, "cylinder");
CHOICE_RULE(SHAPE_plane, "plane");
CHOICE_RULE(SHAPE_mesh, "mesh");

CHOICE_RULE(SIDE, "outside", "inside", "both");

/* clang-format off */
#define COLLIDER_MEMBERS(shape)                                                                             \
    {"shape", &SHAPE_##shape, true, NULL, "Kind of collider"},                                              \
    {"name", &NAME_RULE, false, NULL, "Unique among colliders; else collider_0, collider_1, ..."},          \
    {"place", &PLACE, false, NULL, "Where it is"},                                                          \
    {"motion", &COLLIDER_MOTION, false, NULL, "Where it goes"},                                             \
    {"thickness", &THICKNESS, false, "0", "Metres kept free around it, added to the cloth's"},              \
    {"friction", &FRICTION, false, "0.3", "Coulomb friction, static and kinetic"},                          \
    {"friction_static", &FRICTION, false, NULL, "Friction until it slides; else as the kinetic one"},       \
    {"friction_kinetic", &FRICTION, false, NULL, "Friction while it slides; else as the static one"},       \
    {"side", &SIDE, false, "\"outside\"",                                                                   \
     "Where the cloth is. outside: around a solid; inside: in a container; both: either side of a thin sheet"}, \
    {0}
#define COLLIDER_DEMANDS                                                                                    \
    {NOT_TOGETHER, {"friction", "friction_static"}}, {NOT_TOGETHER, {"friction", "friction_kinetic"}}, {0}
/* clang-format on */

static const rule SPHERE = {
    .form = OBJECT,
    .members = (const member[]){{"radius", &SIZE, true, NULL, "In metres"}, COLLIDER_MEMBERS(sphere)},
    .demands = (const demand[]){COLLIDER_DEMANDS},
};
static const rule BOX = {
    .form = OBJECT,
    .members = (const member[]){{"size", &SIZES_3, true, NULL, "Whole lengths along x, y and z, in metres"},
                                COLLIDER_MEMBERS(box)},
    .demands = (const demand[]){COLLIDER_DEMANDS},
};
static const rule CAPSULE = {
    .form = OBJECT,
    .members = (const member[]){{"radius", &SIZE, true, NULL, "In metres"},
                                {"length", &SIZE, true, NULL, "Of the straight part along z, in metres"},
                                COLLIDER_MEMBERS(capsule)},
    .demands = (const demand[]){COLLIDER_DEMANDS},
};
static const rule CYLINDER = {
    .form = OBJECT,
    .members = (const member[]){{"radius", &SIZE, true, NULL, "In metres"},
                                {"length", &SIZE, true, NULL, "Along z, in metres"},
                                COLLIDER_MEMBERS(cylinder)},
    .demands = (const demand[]){COLLIDER_DEMANDS},
};
static const rule PLANE = {
    .form = OBJECT,
    .members = (const member[]){COLLIDER_MEMBERS(plane)},
    .demands = (const demand[]){COLLIDER_DEMANDS},
};
static const rule MESH = {
    .form = OBJECT,
    .members = (const member[]){
        {"obj", &FILE_RULE, false, NULL, "OBJ file; faces counter-clockwise seen from outside"},
        {"obj_sequence", &FILE_RULE, false, NULL,
         "OBJ files with equal vertices, one per frame: a name in which # signs stand for the frame, as in "
         "body_####.obj"},
        {"mesh", &NAME_RULE, false, NULL, "A mesh of the job"},
        {"track", &NAME_RULE, false, NULL, "Positions of its vertices at every frame, of the job"},
        {"abc", &FILE_RULE, false, NULL, "Alembic archive, read at every frame; faces may change in the course of time"},
        ARCHIVE_MEMBERS,
        {"sequence_first", &FRAME, false, NULL, "Number of the first file; else the scene's first frame"},
        {"hold", &BOOLEAN_RULE, false, "false",
         "Whether frames before the first and after the last file use these"},
        {"scale", &SCALE, false, "1", "Factor on the file's positions; 0.01 if they are in centimetres"},
        COLLIDER_MEMBERS(mesh)},
    .demands = (const demand[]){{EXACTLY_ONE, {"obj", "obj_sequence", "abc", "mesh"}},
                                {FIRST_NEEDS_ONE, {"track", "mesh"}},
                                ARCHIVE_DEMANDS,
                                {FIRST_NEEDS_ONE, {"sequence_first", "obj_sequence"}},
                                {FIRST_NEEDS_ONE, {"hold", "obj_sequence"}},
                                COLLIDER_DEMANDS},
};
static const rule COLLIDER = {
    .form = BY_SHAPE,
    .says = "use {\"shape\": \"sphere\", \"radius\": 0.15}",
    .options = (const rule *const[]){&SPHERE, &BOX, &CAPSULE, &CYLINDER, &PLANE, &MESH, NULL},
};
LIST_RULE(COLLIDERS, 0, 1000, COLLIDER, "use a list of at most 1000 colliders");

/* ---- pins ---- */

CHOICE_RULE(CORNER, "u0v0", "u1v0", "u0v1", "u1v1");
LIST_RULE(CORNERS, 1, 4, CORNER, NULL);
CHOICE_RULE(EDGE, "u0", "u1", "v0", "v1");
LIST_RULE(EDGES, 1, 4, EDGE, NULL);
LIST_RULE(VERTICES, 1, 100000000, VERTEX, "use a list of vertices, counted from 0");
static const rule BALL = {
    .form = OBJECT,
    .says = "use {\"center\": [x, y, z], \"radius\": 0.1}",
    .members = (const member[]){{"center", &POINT, true, NULL, "In metres"},
                                {"radius", &SIZE, true, NULL, "In metres"},
                                {0}},
};
static const rule PANEL_EDGE = {
    .form = OBJECT,
    .says = "use {\"panel\": ..., \"edge\": ...}",
    .members = (const member[]){
        {"panel", &NAME_RULE, true, NULL, "Name of the panel"},
        {"edge", &EDGE_OF_PANEL, true, NULL, "Name or number of its edge"},
        {0}},
};
LIST_RULE(PANEL_EDGES, 1, 10000, PANEL_EDGE, "use a list of edges");
LIST_RULE(PANEL_NAMES, 1, 10000, NAME_RULE, "use a list of names of panels");
static const rule SELECT = {
    .form = OBJECT,
    .says = "use {\"corners\": [\"u0v1\"]} or another selection",
    .members = (const member[]){
        {"corners", &CORNERS, false, NULL, "Corners of a grid; u0v1 is where u begins and v ends"},
        {"edges", &EDGES, false, NULL, "Edges of a grid; u0 is where u begins"},
        {"vertices", &VERTICES, false, NULL, "Vertices by number, from 0, in the order of the file or grid"},
        {"panel_edges", &PANEL_EDGES, false, NULL, "Edges of panels that were cut"},
        {"box", &BOX_CORNERS, false, NULL, "All that starts in this box of the scene, in metres"},
        {"sphere", &BALL, false, NULL, "All that starts in this sphere of the scene"},
        {"within", &SIZE, false, NULL,
         "Grows corners, edges and vertices to all that starts within this distance of them, in metres: a "
         "pin then has the same size at any resolution"},
        {"panels", &PANEL_NAMES, false, NULL, "Of all this, only what belongs to these panels that were cut"},
        {0}},
    .demands = (const demand[]){{AT_LEAST_ONE, {"corners", "edges", "vertices", "panel_edges", "box", "sphere"}},
                                {FIRST_NEEDS_ONE, {"within", "corners", "edges", "vertices"}},
                                {0}},
};
CHOICE_RULE(AXES, "xyz", "x", "y", "z", "xy", "xz", "yz");
NUMBER_RULE(PIN_STIFFNESS, 0, 1e9, "a stiffness is in N/m, 0 to 1e9");
LIST_RULE(CURVE, 2, 1000000, POINT, "use a list of two or more points [x, y, z]");
static const rule PIN = {
    .form = OBJECT,
    .says = "use {\"garment\": ..., \"select\": {...}}",
    .members = (const member[]){
        {"name", &NAME_RULE, false, NULL, "Unique among pins; else pin_0, pin_1, ..."},
        {"garment", &NAME_RULE, true, NULL, "Name of the garment"},
        {"select", &SELECT, true, NULL, "What is held: everything that any of these selects"},
        {"frames", &FRAMES, false, NULL, "First and last frame at which it holds; else all"},
        {"axes", &AXES, false, "\"xyz\"", "World axes along which it holds"},
        {"stiffness", &PIN_STIFFNESS, false, "0", "Of a spring to each vertex, in N/m; 0 holds rigidly"},
        {"surface", &NAME_RULE, false, NULL,
         "Name of a collider on whose surface it stays where it is when it comes on: the nearest triangle of a mesh"},
        {"curve", &CURVE, false, NULL, "Points of a line that its vertices slide along, in metres"},
        {"motion", &PIN_MOTION, false, NULL, "Where it or its curve goes, from the start"},
        {"follow", &NAME_RULE, false, NULL,
         "Name of a collider that it rides on: not of a sequence of files"},
        {"grab", &BOOLEAN_RULE, false, "false",
         "Whether it takes its vertices from where they are when it begins to hold and moves them on from there; else "
         "they go to where the motion puts them from the start"},
        {"track", &NAME_RULE, false, NULL,
         "Where its vertices are at every frame: a track of the job, by rising vertex number"},
        {0}},
    .demands = (const demand[]){{NOT_TOGETHER, {"motion", "follow", "track", "surface"}},
                                {NOT_TOGETHER, {"curve", "follow", "track", "surface"}},
                                {NOT_TOGETHER, {"curve", "axes"}},
                                {NOT_TOGETHER, {"grab", "track"}},
                                {0}},
};
LIST_RULE(PINS, 0, 1000, PIN, "use a list of at most 1000 pins");

/* ---- no contact ---- */

LIST_RULE(APART, 2, 2, NAME_RULE, "use [\"garment\", \"garment or collider\"]");
CHOICE_RULE(EXEMPT_FROM, "all", "cloth", "colliders");
static const rule EXEMPT = {
    .form = OBJECT,
    .says = "use {\"garment\": ..., \"select\": {...}}",
    .members = (const member[]){
        {"garment", &NAME_RULE, true, NULL, "Name of the garment"},
        {"select", &SELECT, true, NULL, "Which of its vertices: everything that any of these selects"},
        {"with", &EXEMPT_FROM, false, "\"all\"", "What they do not touch"},
        {0}},
};
static const rule NO_CONTACT = {
    .form = EITHER,
    .says = "use a pair [\"garment\", \"garment or collider\"], or {\"garment\": ..., \"select\": {...}} for a part of a garment",
    .options = (const rule *const[]){&APART, &EXEMPT, NULL},
};
LIST_RULE(NO_CONTACTS, 0, 100000, NO_CONTACT, "use a list of pairs and parts of garments");

/* ---- the scene ---- */

static const rule SETTINGS = {.form = OBJECT, .says = "use {\"id\": value} with ids of `toile settings`",
                              .fields = toile_settings_fields};
INTEGER_RULE(SETTLE_FRAMES, 1, 100000, "settling takes 1 to 100000 frames");
POSITIVE_RULE(SETTLE_SPEED, 100, "a speed is in m/s, greater than 0");
static const rule SETTLE = {
    .form = OBJECT,
    .says = "use {\"frames\": 100}",
    .members = (const member[]){
        {"frames", &SETTLE_FRAMES, true, NULL,
         "At most so many frames before the first one, with colliders as they are there. Pins whose frames end before the "
         "first hold meanwhile"},
        {"speed", &SETTLE_SPEED, false, "0.01", "Root mean square of the cloth's speed, in m/s, that counts as rest"},
        {0}},
};
static const rule START = {
    .form = OBJECT,
    .says = "use {\"cache\": \"draped.h5\", \"frame\": 40}",
    .members = (const member[]){
        {"cache", &FILE_RULE, false, NULL, "A bake of the same garments, by their names"},
        {"frame", &FRAME, false, NULL, "Else its last"},
        {"track", &NAME_RULE, false, NULL,
         "Tracks of the job, this name and that of each garment: positions, then velocities"},
        {0}},
    .demands = (const demand[]){{EXACTLY_ONE, {"cache", "track"}}, {FIRST_NEEDS_ONE, {"frame", "cache"}}, {0}},
};
static const rule SCENE = {
    .form = OBJECT,
    .says = "a scene is an object: {\"toile\": 1, \"garments\": [...]}",
    .members = (const member[]){
        {"$schema", &TEXT_RULE, false, NULL, "For editors; not used"},
        {"toile", &VERSION, true, NULL, "Version of the scene format: 1"},
        {"name", &NAME_RULE, false, NULL, "Else the file's name"},
        {"description", &TEXT_RULE, false, NULL, "What it shows; not used"},
        {"job", &FILE_RULE, false, NULL, "Job file that its meshes and tracks are in; a scene in a job has it at hand"},
        {"fps", &FPS, false, "24", "Frames per second"},
        {"frames", &FRAMES, false, "[1, 100]", "First and last frame; garments start at the first"},
        {"resolution", &COUNT, false, "41", "Particles along the longer side of every grid that gives none"},
        {"settings", &SETTINGS, false, NULL, "Settings of the simulation; see `toile settings`"},
        {"fabrics", &FABRICS, false, NULL, "Fabrics of this scene, by name"},
        {"garments", &GARMENTS, true, NULL, "What is simulated"},
        {"colliders", &COLLIDERS, false, NULL, "What it collides with"},
        {"pins", &PINS, false, NULL, "What is held"},
        {"no_contact", &NO_CONTACTS, false, NULL,
         "What goes through each other: pairs of garments, of a garment and a collider, a garment twice for its contact "
         "with itself; and parts of garments that touch nothing"},
        {"start", &START, false, NULL, "Garments begin as in a frame of a cache, seams that are closed there welded"},
        {"settle", &SETTLE, false, NULL, "Comes to rest before the first frame, which then is the draped garment"},
        {0}},
};

/* ---- from a row of a settings table to a rule ---- */

/* A rule and, for a vector, the rule of its numbers. Stays where it is: the one points to the other. */
typedef struct field_rule {
    rule whole, number;
} field_rule;

static const rule *rule_of_field(const toile_field *field, field_rule *made) {
    memset(made, 0, sizeof *made);
    rule *number = &made->number;
    number->form = field->type == TOILE_FIELD_INT ? INTEGER : NUMBER;
    number->min = field->hard_min;
    number->max = field->hard_max;
    number->unit = strcmp(field->unit, "1") == 0 ? NULL : field->unit;
    switch (field->type) {
    case TOILE_FIELD_REAL:
    case TOILE_FIELD_INT: return number;
    case TOILE_FIELD_VEC3:
        made->whole = (rule){.form = LIST, .says = "use [x, y, z]", .least = 3, .most = 3, .item = number};
        break;
    case TOILE_FIELD_BOOL: return &BOOLEAN_RULE;
    case TOILE_FIELD_CHOICE: made->whole = (rule){.form = CHOICE_OF, .choices = field->choices}; break;
    }
    return &made->whole;
}

/* ---- checking ---- */

typedef struct checker {
    const toile_source *source;
    toile_error *error;
} checker;

/* A value in a few words, for "found ...". */
static void describe(const json_t *value, char *text, size_t size) {
    switch (json_typeof(value)) {
    case JSON_OBJECT: snprintf(text, size, "an object"); break;
    case JSON_ARRAY: snprintf(text, size, "a list of %zu", json_array_size(value)); break;
    case JSON_INTEGER: snprintf(text, size, "%lld", (long long)json_integer_value(value)); break;
    case JSON_REAL: snprintf(text, size, "%.9g", json_real_value(value)); break;
    case JSON_TRUE: snprintf(text, size, "true"); break;
    case JSON_FALSE: snprintf(text, size, "false"); break;
    case JSON_NULL: snprintf(text, size, "null"); break;
    case JSON_STRING: {
        const char *s = json_string_value(value);
        size_t length = strlen(s), cut = length <= 40 ? length : 40;
        while (cut < length && cut > 0 && ((unsigned char)s[cut] & 0xc0) == 0x80)
            cut--; /* not inside a character */
        snprintf(text, size, "\"%.*s%s\"", (int)cut, s, cut < length ? "..." : "");
        break;
    }
    }
}

/* What a rule allows, in words. */
static void allowed(const rule *rule, char *text, size_t size) {
    const char *unit = rule->unit ? rule->unit : "";
    if (rule->says) {
        snprintf(text, size, "%s", rule->says);
    } else if (rule->form == NUMBER || rule->form == INTEGER) {
        snprintf(text, size, "use a %snumber from %g to %g%s%s", rule->form == INTEGER ? "whole " : "",
                 rule->min, rule->max, *unit ? " " : "", unit);
    } else if (rule->form == CHOICE_OF) {
        size_t used = (size_t)snprintf(text, size, "use ");
        for (int i = 0; rule->choices[i] && used < size; i++)
            used += (size_t)snprintf(text + used, size - used, "%s\"%s\"",
                                     i == 0 ? "" : rule->choices[i + 1] ? ", " : " or ", rule->choices[i]);
    } else if (rule->form == LIST) {
        snprintf(text, size, "use a list of %zu to %zu elements", rule->least, rule->most);
    } else {
        snprintf(text, size, "use an object {...}");
    }
}

static toile_status refuse(const checker *c, const rule *rule, const json_t *value,
                           const toile_place *place) {
    char found[80], wanted[512];
    describe(value, found, sizeof found);
    allowed(rule, wanted, sizeof wanted);
    return toile_place_fail(c->source, place, c->error, TOILE_INVALID, "found %s; %s", found, wanted);
}

/* Whether a value is of the kind that a rule is about, whatever its range. */
static bool is_kind(const rule *rule, const json_t *value) {
    switch (rule->form) {
    case NUMBER: return json_is_number(value);
    case INTEGER: return json_is_number(value) && json_number_value(value) == floor(json_number_value(value));
    case BOOLEAN: return json_is_boolean(value);
    case TEXT:
    case NAME:
    case FILE_NAME:
    case CHOICE_OF: return json_is_string(value);
    case LIST: return json_is_array(value);
    case OBJECT:
    case MAP:
    case BY_SHAPE: return json_is_object(value);
    case EITHER: return true;
    }
    return false;
}

/* Characters of a text; 0 if there is none or a control character among them. */
static size_t count_characters(const char *text) {
    size_t count = 0;
    for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
        if (*c < 32 || *c == 127)
            return 0;
        count += (*c & 0xc0) != 0x80; /* UTF-8: all bytes of a character but its first are 10xxxxxx */
    }
    return count;
}

static bool is_name(const char *text) {
    size_t count = count_characters(text);
    return count > 0 && count <= NAME_MOST && !strchr(text, '/');
}

static toile_status check(const checker *c, const rule *rule, const json_t *value, const toile_place *place);

static toile_status check_key(const checker *c, const rule *object, const char *key, const json_t *value,
                              const toile_place *place) {
    toile_place inside = {place, key, 0};
    const char *known[KEYS_MOST];
    int count = 0;
    for (const member *m = object->members; m && m->key; m++) {
        if (strcmp(m->key, key) == 0)
            return check(c, m->rule, value, &inside);
        known[count++] = m->key;
    }
    if (object->fields) {
        int field_count;
        const toile_field *fields = object->fields(&field_count);
        const toile_field *field = toile_find_field(fields, field_count, key);
        field_rule made;
        if (field)
            return check(c, rule_of_field(field, &made), value, &inside);
        for (int i = 0; i < field_count && count < KEYS_MOST; i++)
            known[count++] = fields[i].id;
    }
    char names[600];
    toile_known_names(key, known, count, names, sizeof names);
    return toile_place_fail(c->source, &inside, c->error, TOILE_INVALID, "unknown key; %s", names);
}

/* The key without its []. */
static const char *plain_key(const char *key, char text[32]) {
    snprintf(text, 32, "%.*s", (int)strcspn(key, "["), key);
    return text;
}

static bool is_present(const json_t *object, const char *key) {
    char plain[32];
    const json_t *value = json_object_get(object, plain_key(key, plain));
    return strchr(key, '[') ? json_is_array(value) : value != NULL;
}

static toile_status check_demand(const checker *c, const demand *d, const json_t *value,
                                 const toile_place *place) {
    char keys[200] = "", plain[32], last[32];
    int present = 0;
    const char *one = NULL;
    for (int i = d->kind == FIRST_NEEDS_ONE; d->keys[i]; i++) {
        size_t used = strlen(keys);
        snprintf(keys + used, sizeof keys - used, "%s\"%s\"",
                 !used            ? ""
                 : d->keys[i + 1] ? ", "
                                  : " or ",
                 plain_key(d->keys[i], plain));
        if (is_present(value, d->keys[i])) {
            present++;
            one = plain_key(d->keys[i], last);
        }
    }
    if (present == 0 && (d->kind == EXACTLY_ONE || d->kind == AT_LEAST_ONE))
        return toile_place_fail(c->source, place, c->error, TOILE_INVALID, "needs %s", keys);
    if (present > 1 && (d->kind == EXACTLY_ONE || d->kind == NOT_TOGETHER)) {
        toile_place inside = {place, one, 0};
        return toile_place_fail(c->source, &inside, c->error, TOILE_INVALID, "give %s, %s", keys,
                                d->keys[2] ? "only one of them" : "not both");
    }
    if (d->kind == FIRST_NEEDS_ONE && present == 0 && json_object_get(value, d->keys[0])) {
        toile_place inside = {place, d->keys[0], 0};
        return toile_place_fail(c->source, &inside, c->error, TOILE_INVALID, "goes only with %s", keys);
    }
    return TOILE_OK;
}

static toile_status check_object(const checker *c, const rule *rule, const json_t *value,
                                 const toile_place *place) {
    const char *key;
    json_t *item;
    json_object_foreach((json_t *)value, key, item) {
        toile_status status = check_key(c, rule, key, item, place);
        if (status != TOILE_OK)
            return status;
    }
    for (const member *m = rule->members; m && m->key; m++)
        if (m->required && !json_object_get(value, m->key))
            return toile_place_fail(c->source, place, c->error, TOILE_INVALID, "\"%s\" is missing", m->key);
    for (const demand *d = rule->demands; d && d->keys[0]; d++) {
        toile_status status = check_demand(c, d, value, place);
        if (status != TOILE_OK)
            return status;
    }
    return TOILE_OK;
}

static toile_status check_map(const checker *c, const rule *rule, const json_t *value,
                              const toile_place *place) {
    const char *key;
    json_t *item;
    json_object_foreach((json_t *)value, key, item) {
        toile_place inside = {place, key, 0};
        if (!count_characters(key))
            return toile_place_fail(c->source, &inside, c->error, TOILE_INVALID,
                                    "not a name; a name is not empty and has no control characters");
        toile_status status = check(c, rule->item, item, &inside);
        if (status != TOILE_OK)
            return status;
    }
    return TOILE_OK;
}

static toile_status check_by_shape(const checker *c, const rule *rule, const json_t *value,
                                   const toile_place *place) {
    const json_t *shape = json_object_get(value, "shape");
    const char *known[16];
    int count = 0;
    for (const struct rule *const *option = rule->options; *option; option++) {
        const member *m = (*option)->members;
        while (strcmp(m->key, "shape") != 0)
            m++;
        known[count] = m->rule->choices[0];
        if (json_is_string(shape) && strcmp(known[count], json_string_value(shape)) == 0)
            return check_object(c, *option, value, place);
        count++;
    }
    char found[80] = "", names[300];
    toile_known_names(json_is_string(shape) ? json_string_value(shape) : "", known, count, names,
                      sizeof names);
    if (!shape)
        return toile_place_fail(c->source, place, c->error, TOILE_INVALID, "\"shape\" is missing; %s", names);
    toile_place inside = {place, "shape", 0};
    describe(shape, found, sizeof found);
    return toile_place_fail(c->source, &inside, c->error, TOILE_INVALID, "found %s; %s", found, names);
}

static toile_status check(const checker *c, const rule *rule, const json_t *value, const toile_place *place) {
    if (!is_kind(rule, value))
        return refuse(c, rule, value, place);
    switch (rule->form) {
    case NUMBER:
    case INTEGER: {
        double number = json_number_value(value);
        bool low = rule->above ? number <= rule->min : number < rule->min;
        bool fits = isfinite(number) && !low && number <= rule->max;
        return fits ? TOILE_OK : refuse(c, rule, value, place);
    }
    case BOOLEAN:
    case TEXT: return TOILE_OK;
    case NAME: return is_name(json_string_value(value)) ? TOILE_OK : refuse(c, rule, value, place);
    case FILE_NAME:
        return count_characters(json_string_value(value)) ? TOILE_OK : refuse(c, rule, value, place);
    case CHOICE_OF:
        for (int i = 0; rule->choices[i]; i++)
            if (strcmp(rule->choices[i], json_string_value(value)) == 0)
                return TOILE_OK;
        return refuse(c, rule, value, place);
    case LIST: {
        size_t count = json_array_size(value);
        if (count < rule->least || count > rule->most)
            return refuse(c, rule, value, place);
        for (size_t i = 0; i < count; i++) {
            toile_place inside = {place, NULL, i};
            toile_status status = check(c, rule->item, json_array_get(value, i), &inside);
            if (status != TOILE_OK)
                return status;
        }
        return TOILE_OK;
    }
    case OBJECT: return check_object(c, rule, value, place);
    case MAP: return check_map(c, rule, value, place);
    case BY_SHAPE: return check_by_shape(c, rule, value, place);
    case EITHER:
        for (const struct rule *const *option = rule->options; *option; option++)
            if (is_kind(*option, value))
                return check(c, *option, value, place);
        return refuse(c, rule, value, place);
    }
    return TOILE_OK;
}

toile_status toile_scene_check_form(const toile_source *source, const json_t *scene, toile_error *error) {
    checker c = {source, error};
    toile_place whole = {NULL, NULL, 0};
    return check(&c, &SCENE, scene, &whole);
}

/* ---- as JSON Schema ---- */

/* Every function here takes what it is given, and remembers in `failed` if memory ran out. */
static void put(json_t *object, const char *key, json_t *value, bool *failed) {
    if (json_object_set_new(object, key, value) != 0)
        *failed = true;
}

static void append(json_t *array, json_t *value, bool *failed) {
    if (json_array_append_new(array, value) != 0)
        *failed = true;
}

static json_t *whole_or_real(double value) {
    return value == floor(value) && fabs(value) < 1e15 ? json_integer((json_int_t)value) : json_real(value);
}

static json_t *schema_of(const rule *rule, bool *failed);

static json_t *schema_of_member(const member *m, bool *failed) {
    json_t *schema = schema_of(m->rule, failed);
    put(schema, "description", json_string(m->meaning), failed);
    if (m->standard)
        put(schema, "default", json_loads(m->standard, JSON_DECODE_ANY, NULL), failed);
    return schema;
}

static json_t *standard_of_field(const toile_field *field, bool *failed) {
    const double *value = field->standard;
    switch (field->type) {
    case TOILE_FIELD_REAL: return json_real(value[0]);
    case TOILE_FIELD_INT: return json_integer((json_int_t)value[0]);
    case TOILE_FIELD_BOOL: return json_boolean(value[0] != 0);
    case TOILE_FIELD_CHOICE: return json_string(field->choices[(int)value[0]]);
    case TOILE_FIELD_VEC3: break;
    }
    json_t *list = json_array();
    for (int i = 0; i < 3; i++)
        append(list, json_real(value[i]), failed);
    return list;
}

static json_t *schema_of_field(const toile_field *field, bool *failed) {
    field_rule made;
    json_t *schema = schema_of(rule_of_field(field, &made), failed);
    bool unit = strcmp(field->unit, "1") != 0;
    put(schema, "title", json_string(field->label), failed);
    put(schema, "description",
        unit ? json_sprintf("%s (%s)", field->tooltip, field->unit) : json_string(field->tooltip), failed);
    put(schema, "default", standard_of_field(field, failed), failed);
    return schema;
}

/* {"required": [key]} for each key, in a list. */
static json_t *presence(const char *const *keys, bool *failed) {
    json_t *list = json_array();
    char plain[32];
    for (; *keys; keys++) {
        json_t *item = json_pack("{s:[s]}", "required", plain_key(*keys, plain));
        if (strchr(*keys, '['))
            put(item, "properties", json_pack("{s:{s:s}}", plain, "type", "array"), failed);
        append(list, item, failed);
    }
    return list;
}

static json_t *schema_of_demand(const demand *d, bool *failed) {
    json_t *schema = json_object();
    switch (d->kind) {
    case EXACTLY_ONE: put(schema, "oneOf", presence(d->keys, failed), failed); break;
    case AT_LEAST_ONE: put(schema, "anyOf", presence(d->keys, failed), failed); break;
    case NOT_TOGETHER:
        put(schema, "not", json_pack("{s:[s,s]}", "required", d->keys[0], d->keys[1]), failed);
        break;
    case FIRST_NEEDS_ONE:
        put(schema, "dependentSchemas",
            json_pack("{s:{s:o}}", d->keys[0], "anyOf", presence(d->keys + 1, failed)), failed);
        break;
    }
    return schema;
}

static void put_object(json_t *schema, const rule *rule, bool *failed) {
    json_t *properties = json_object(), *required = json_array(), *demands = json_array();
    for (const member *m = rule->members; m && m->key; m++) {
        put(properties, m->key, schema_of_member(m, failed), failed);
        if (m->required)
            append(required, json_string(m->key), failed);
    }
    int count = 0;
    const toile_field *fields = rule->fields ? rule->fields(&count) : NULL;
    for (int i = 0; i < count; i++)
        put(properties, fields[i].id, schema_of_field(&fields[i], failed), failed);
    for (const demand *d = rule->demands; d && d->keys[0]; d++)
        append(demands, schema_of_demand(d, failed), failed);

    put(schema, "properties", properties, failed);
    put(schema, "required", required, failed);
    put(schema, "additionalProperties", json_false(), failed);
    if (json_array_size(demands) > 0)
        put(schema, "allOf", demands, failed);
    else
        json_decref(demands);
}

static json_t *schema_of(const rule *rule, bool *failed) {
    static const char *const TYPES[] = {
        [NUMBER] = "number", [INTEGER] = "integer",  [BOOLEAN] = "boolean",  [TEXT] = "string",
        [NAME] = "string",   [FILE_NAME] = "string", [CHOICE_OF] = "string", [LIST] = "array",
        [OBJECT] = "object", [MAP] = "object",
    };
    json_t *schema = json_object();
    if (rule->form != EITHER && rule->form != BY_SHAPE)
        put(schema, "type", json_string(TYPES[rule->form]), failed);
    switch (rule->form) {
    case NUMBER:
    case INTEGER:
        put(schema, rule->above ? "exclusiveMinimum" : "minimum", whole_or_real(rule->min), failed);
        put(schema, "maximum", whole_or_real(rule->max), failed);
        break;
    case BOOLEAN:
    case TEXT: break;
    case NAME:
        put(schema, "maxLength", json_integer(NAME_MOST), failed);
        put(schema, "pattern", json_string("^[^/\\u0000-\\u001f\\u007f]+$"), failed);
        break;
    case FILE_NAME: put(schema, "pattern", json_string("^[^\\u0000-\\u001f\\u007f]+$"), failed); break;
    case CHOICE_OF: {
        json_t *choices = json_array();
        for (int i = 0; rule->choices[i]; i++)
            append(choices, json_string(rule->choices[i]), failed);
        put(schema, "enum", choices, failed);
        break;
    }
    case LIST:
        put(schema, "items", schema_of(rule->item, failed), failed);
        put(schema, "minItems", json_integer((json_int_t)rule->least), failed);
        put(schema, "maxItems", json_integer((json_int_t)rule->most), failed);
        break;
    case OBJECT: put_object(schema, rule, failed); break;
    case MAP:
        put(schema, "propertyNames", json_pack("{s:s}", "pattern", "^[^\\u0000-\\u001f\\u007f]+$"), failed);
        put(schema, "additionalProperties", schema_of(rule->item, failed), failed);
        break;
    case EITHER:
    case BY_SHAPE: {
        json_t *options = json_array();
        for (const struct rule *const *option = rule->options; *option; option++)
            append(options, schema_of(*option, failed), failed);
        put(schema, rule->form == EITHER ? "anyOf" : "oneOf", options, failed);
        break;
    }
    }
    return schema;
}

char *toile_scene_schema(void) {
    bool failed = false;
    json_t *schema = json_object(), *body = schema_of(&SCENE, &failed);
    put(schema, "$schema", json_string("https://json-schema.org/draft/2020-12/schema"), &failed);
    put(schema, "title", json_string("Toile scene"), &failed);
    put(schema, "description", json_string("A scene file of Toile " TOILE_VERSION ", format 1"), &failed);
    if (json_object_update(schema, body) != 0)
        failed = true;
    char *text = failed ? NULL : json_dumps(schema, JSON_INDENT(2) | JSON_REAL_PRECISION(15));
    json_decref(body);
    json_decref(schema);
    return text;
}
