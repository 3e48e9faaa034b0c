/* SPDX-License-Identifier: Apache-2.0
 * Shows the comparison of two machines as a picture and as JSON. */
#include "common/memory.h"
#include "common/units.h"
#include "draw/colors.h"
#include "draw/plot.h"
#include "sim/compare.h"
#include "sim/views.h"

#include <math.h>
#include <stdlib.h>

/* ---- JSON ------------------------------------------------------------------------------------ */

/* Writes a text of the user as a JSON string. */
static void write_string(const char *text, FILE *out)
{
    fputc('"', out);
    for (const unsigned char *at = (const unsigned char *)text; *at != '\0'; at++)
        if (*at < ' ')
            fprintf(out, "\\u%04x", *at);
        else
            fprintf(out, "%s%c", *at == '"' || *at == '\\' ? "\\" : "", *at);
    fputc('"', out);
}

void view_compare_json(const struct comparison *comparison, FILE *out)
{
    fprintf(out, "{\"collective\": \"%s\",\n\"sizes\": [",
            tutti_collective_name(comparison->sweep[0].collective));
    for (size_t i = 0; i < comparison->nsizes; i++) {
        const struct compared_size *size = &comparison->sizes[i];
        double speedup = compare_speedup(size);

        fprintf(out, "%s\n  {\"size_bytes\": %.17g", i > 0 ? "," : "", size->size_bytes);
        for (int m = 0; m < MACHINES; m++)
            if (size->best[m] != NULL)
                fprintf(out, ", \"%c_seconds\": %.9g", 'a' + m, sweep_seconds(size->best[m]));
        if (!isnan(speedup))
            fprintf(out, ", \"speedup\": %.6g", speedup);
        fputs("}", out);
    }
    fputs("\n]", out);
    for (int m = 0; m < MACHINES; m++) {
        fprintf(out, ",\n\"%c\": {\"machine\": ", 'a' + m);
        write_string(comparison->topo[m], out);
        fprintf(out, ", \"ranks\": %u, ", comparison->nranks[m]);
        view_json_cases(&comparison->sweep[m], false, out);
        fputs("}", out);
    }
    fputs("}\n", out);
}

/* ---- the picture ----------------------------------------------------------------------------- */

#define VISIBLE 0.005 /* relative difference from which on two curves look different */

/* The curves of both machines, as arrays with a value for each size. All arrays are owned. */
struct curves {
    double *sizes;
    double *times[MACHINES], *bounds[MACHINES]; /* seconds; NAN: there is no value */
};

static void make_curves(const struct comparison *comparison, struct curves *curves)
{
    size_t count = comparison->nsizes;

    curves->sizes = must_calloc(count, sizeof *curves->sizes);
    for (size_t i = 0; i < count; i++)
        curves->sizes[i] = comparison->sizes[i].size_bytes;
    for (int m = 0; m < MACHINES; m++) {
        curves->times[m] = must_calloc(count, sizeof *curves->times[m]);
        curves->bounds[m] = must_calloc(count, sizeof *curves->bounds[m]);
        for (size_t i = 0; i < count; i++) {
            const struct compared_size *size = &comparison->sizes[i];

            curves->times[m][i] = size->best[m] == NULL ? NAN : sweep_seconds(size->best[m]);
            curves->bounds[m][i] = size->bound_s[m];
        }
    }
}

static void curves_fini(struct curves *curves)
{
    free(curves->sizes);
    for (int m = 0; m < MACHINES; m++) {
        free(curves->times[m]);
        free(curves->bounds[m]);
    }
}

/* Returns true if the two curves look the same in the picture. */
static bool look_same(double *const y[MACHINES], size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (isnan(y[0][i]) != isnan(y[1][i]) || fabs(y[0][i] - y[1][i]) > VISIBLE * y[1][i])
            return false;
    return true;
}

/* Adds the curve of each machine, or one curve if they look the same. Returns their number. */
static size_t add_series(const struct curves *curves, size_t count, bool is_bound,
                         struct plot_series series[MACHINES])
{
    static const char *const names[] = {"A", "B", "A and B"};
    static const char *const bounds[] = {"lower bound of A", "lower bound of B", "lower bounds"};
    double *const *y = is_bound ? curves->bounds : curves->times;
    size_t nseries = look_same(y, count) ? 1 : MACHINES;

    for (size_t i = 0; i < nseries; i++) {
        size_t name = nseries == 1 ? MACHINES : i;

        series[i] = (struct plot_series){
            .name = is_bound ? bounds[name] : names[name],
            .x = curves->sizes,
            .y = y[i],
            .count = count,
            .is_bound = is_bound,
            .color = nseries == 1 ? NULL : color_of(i),
        };
    }
    return nseries;
}

int view_compare_picture(const struct comparison *comparison, const char *file_name)
{
    size_t count = comparison->nsizes;
    struct curves curves;
    struct plot_series series[2 * MACHINES];
    char *notes[MACHINES], ranks[UNITS_TEXT];
    struct plot plot = {
        .title = tutti_collective_name(comparison->sweep[0].collective),
        .subtitle = "the fastest algorithm of each size on two machines",
        .notes = (const char *const *)notes,
        .nnotes = MACHINES,
        .x_name = "size of the whole vector",
        .y_name = "time",
        .x_unit = AXIS_BYTES,
        .y_unit = AXIS_SECONDS,
        .series = series,
    };
    int error;

    make_curves(comparison, &curves);
    plot.nseries = add_series(&curves, count, false, series);
    plot.nseries += add_series(&curves, count, true, series + plot.nseries);
    for (int m = 0; m < MACHINES; m++)
        if (asprintf(&notes[m], "%c: %s ranks, %s", 'A' + m,
                     units_count(comparison->nranks[m], ranks), comparison->topo[m]) < 0)
            notes[m] = must_have(NULL);
    error = plot_draw(&plot, file_name);
    for (int m = 0; m < MACHINES; m++)
        free(notes[m]);
    curves_fini(&curves);
    return error;
}
