/* SPDX-License-Identifier: MIT */
/* Writes the weights with which examples/maml.c, pinn_poisson.c, pinn_burgers.c and wgan_gp.c begin, for make_example_losses.py.
 *
 *   cc example_weights.c $(pkg-config --cflags --libs weft) -o example_weights && ./example_weights FOLDER */
#include <stdio.h>

#include <weft/weft.h>

struct shape {
    const char *file;
    uint64_t seed;
    const char *layer[4];
    int64_t size[5];
};

int main(int argc, char **argv)
{
    static const struct shape shapes[] = {{"maml", 1, {"layer.0", "layer.1", "layer.2"}, {1, 40, 40, 1}},
                                          {"pinn", 1, {"in", "hidden", "deep", "out"}, {2, 32, 32, 32, 1}},
                                          {"generator", 1, {"in", "hidden", "out"}, {2, 64, 64, 2}},
                                          {"critic", 2, {"in", "hidden", "out"}, {2, 64, 64, 1}}};
    wf_error error = {0};
    for (int i = 0; i < 4 && argc == 2 && error.code == WF_OK; i++) {
        struct wf_linear layer[4];
        char path[4096];
        wf_registry *r = wf_registry_new(&error);
        for (int l = 0; l < 4 && shapes[i].layer[l]; l++)
            wf_linear_init(wf_sub(wf_root(r), shapes[i].layer[l]), &layer[l], shapes[i].size[l], shapes[i].size[l + 1]);
        if (wf_registry_build(r, shapes[i].seed, &error) == WF_OK) {
            wf_safetensors_writer *writer = wf_safetensors_writer_new();
            wf_registry_save(r, writer, "");
            snprintf(path, sizeof path, "%s/%s.safetensors", argv[1], shapes[i].file);
            if (wf_safetensors_commit(writer, path, &error) != WF_OK)
                fprintf(stderr, "%s\n", error.message);
        }
        wf_registry_free(r);
    }
    return error.code != WF_OK || argc != 2;
}
