/* SPDX-License-Identifier: MIT */
/* Names that other programs (nanoGPT, transformers, fairseq, llama.cpp) use for options of Weft's commands, so that messages can suggest
 * the option. Other programs' names of settings are in models/names.c. */
#include <string.h>

#include <weft/internal/setting_names.h>

#include "options.h"

static const struct {
    const char *option;
    const char *also; /* other programs' names, separated by blanks */
} foreign[] = {
    {"steps", "max_iters max_steps max_update max_updates total_steps num_steps train_steps training_steps num_train_steps "
              "num_training_steps iters iterations n_iters total_iters"},
    {"max-time", "max_train_time time_limit stop_time_hours max_time_seconds"},
    {"seed", "random_seed rng_seed manual_seed data_seed"},
    {"out", "out_dir output output_dir output_file save_dir save_path checkpoint_dir run_dir"},
    {"train", "train_file train_data train_path trainpref dataset dataset_name data data_dir"},
    {"valid", "valid_file valid_data validation_file validation validpref val val_file val_data eval_file eval_data dev"},
    {"data", "test test_file text text_file file input eval_data dataset"},
    {"from", "init_from model_name_or_path pretrained pretrained_model restore_file finetune_from_model checkpoint load"},
    {"resume", "resume_from_checkpoint continue resume_from"},
    {"config", "config_name config_file"},
    {"tokenizer", "tokenizer_name vocab vocab_file"},
    {"threads", "n_threads num_threads num_workers cpu_threads nproc num_cpus"},
    {"prompt", "text input start"},
    {"prompt-file", "file input_file"},
    {"max-tokens", "max_new_tokens n_predict max_length max_len num_tokens new_tokens n_tokens generate_tokens length"},
    {"temperature", "temp sampling_temperature"},
    {"top-k", "topk sampling_topk"},
    {"top-p", "topp sampling_topp nucleus"},
    {"min-p", "minp"},
    {"repetition-penalty", "repeat_penalty rep_penalty"},
    {"stop", "stop_strings reverse_prompt stop_sequences"},
    {"draft", "assistant_model model_draft draft_model speculative_model"},
    {"draft-tokens", "num_assistant_tokens draft_max num_speculative_tokens"},
    {"logprobs", "top_logprobs n_probs output_scores"},
    {"input", "prompts prompts_file prompt_list"},
    {"greedy", "no_sample argmax deterministic"},
    {"samples", "num_samples n_samples num_return_sequences best_of"},
    {"no-cache", "no_kv_cache"},
    {"system", "system_prompt system_message sys"},
    {"template", "chat_template"},
    {"beam", "num_beams beam_size beam_width beams nbeams"},
    {"n-best", "nbest num_return_sequences"},
    {"length-penalty", "lenpen len_penalty alpha"},
    {"batch", "batch_size buffer_size max_sentences mini_batch"},
    {"shard-size", "max_shard_size split_max_size"},
    {"to", "format output_format"},
    {"dtype", "torch_dtype outtype precision"},
    {"map", "mmap no_mmap use_mmap low_cpu_mem_usage"},
    {"weights", "checkpoint checkpoint_file path"},
};

bool option_is_called(const char *option, const char *name)
{
    for (size_t k = 0; k < sizeof foreign / sizeof *foreign; k++)
        if (strcmp(foreign[k].option, option) == 0)
            return wf_name_in(foreign[k].also, name);
    return false;
}
