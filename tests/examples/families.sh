#!/bin/sh
# SPDX-License-Identifier: MIT
# Programs that register a family, examples/llama.c, translator.c, moe.c and ssm.c, or an optimiser, examples/adamax.c, are compiled against the installed library and go through the
# whole command: train, kill, resume to the same bytes, generate with and without the cache, evaluate, translate with a beam, attention
# maps, bench; a term of the loss; and the optimiser's keys.
. "$(dirname "$0")/common.sh"
example llama translator moe ssm adamax complete

# survives PROGRAM MODEL FILES SETTING: a training that is killed and resumed ends with the bytes of one that is not.
survives()
{
    common="--steps 24 --set save_every=1 --set valid_every=15 --set $4"
    # shellcheck disable=SC2086
    run ./"$1" train "$2" --train "$3" --valid "$3" --out "$1.straight" $common
    # shellcheck disable=SC2086
    ./"$1" train "$2" --train "$3" --valid "$3" --out "$1.killed" $common >out 2>err &
    process=$!
    tries=0
    while [ ! -f "$1.killed/state.safetensors" ] && [ $tries -lt 300 ]; do
        tries=$((tries + 1))
        sleep 0.05
    done
    kill -9 $process 2>/dev/null || true
    wait $process 2>/dev/null || true
    # shellcheck disable=SC2086
    run ./"$1" train "$2" --train "$3" --valid "$3" --out "$1.killed" $common --resume
    cmp "$1.straight/model.safetensors" "$1.killed/model.safetensors" || wrong "$1: the weights of a resumed training differ"
    cmp "$1.straight/best.safetensors" "$1.killed/best.safetensors" || wrong "$1: the best weights of a resumed training differ"
}

run ./llama models
grep -q '^llama-small  *small-llama  *[0-9]' out || wrong 'models does not list llama-small'
run ./llama models llama-small
grep -q 'rope_base=10000' out || wrong 'models llama-small does not list the key rope_base'
run ./llama train --help
grep -q 'Keys of the family small-llama' out || wrong 'train --help does not list the keys of llama'

survives llama llama-small "$story" dropout=0.1
run ./llama generate llama.straight --prompt 'The ' --max-tokens 100 --seed 3
mv out cached
run ./llama generate llama.straight --prompt 'The ' --max-tokens 40 --greedy
# a program of forty lines reads a folder of any family that Weft has; of others it says whose they are
run ./complete "$root/tests/golden/decoders/llama" 'the king'
[ "$(wc -l <out)" -ge 2 ] && grep -q "^the likeliest token after the text: '.*', logit -*[0-9.]*$" out || wrong "complete: $(cat out)"
./complete llama.straight x >out 2>err && wrong 'complete opens a family that is not registered'
grep -q 'no family "small-llama" is registered here' err || wrong "complete: $(cat err)"
[ "$(wc -l <"$root/examples/complete.c")" -le 48 ] || wrong 'examples/complete.c is not short'
[ "$(wc -m <cached)" -ge 100 ] || wrong "generated only: $(cat cached)"
run ./llama generate llama.straight --prompt 'The ' --max-tokens 100 --seed 3 --no-cache
cmp cached out || wrong 'the text generated without the cache differs'
run ./llama evaluate llama.straight --data "$story" --json
grep -q '"bits_per_character"' out || wrong "evaluate: $(cat out)"
run ./llama attention llama.straight --text 'a few words' --out map.json
grep -q '"kind": *"decoder"' map.json || wrong 'attention wrote no map'
run ./llama attention llama.straight --text 'a few words' --layer 2 --head 1 --out map.html
run ./llama bench llama-small generate-llama-small --seconds 0.01 --steps 1 --json
grep -c '"case":"[a-z-]*llama-small"' out >count || true
[ "$(cat count)" = 2 ] || wrong "bench: $(cat out)"
run ./llama inspect llama.straight
grep -q 'blocks.3.attn.qkv.weight' out || wrong 'inspect does not list the weights'

# A program with other commands gives wf_main a part of its arguments.
cat >own.c <<'END'
#include <string.h>
#include <weft/weft.h>

int main(int argc, char **argv)
{
    return argc > 1 && strcmp(argv[1], "lm") == 0 ? wf_main(argc - 1, argv + 1) : 9;
}
END
compile own.c own
./own lm models >out 2>err || wrong "own lm models: exit code $?"
grep -q '^nanogpt-char ' out || wrong 'own lm models lists nothing'

# Mistakes are named, by the program's name; the command of the zoo says what a run of another family needs.
./llama train llama-smal --train "$story" --out x 2>err && wrong 'an unknown model was trained'
grep -q '^llama: .*did you mean llama-small' err || wrong "the unknown model: $(tail -1 err)"
./llama train llama-small --train "$story" --out x --set heads=3 2>err && wrong 'heads=3 was taken'
grep -q '^llama: .*d_model (128) must be a multiple of heads (3)' err || wrong "heads=3: $(tail -1 err)"
"$build/cli/weft" generate llama.straight 2>err && wrong 'weft opened a run of a family that it does not know'
grep -q 'no family "small-llama" is registered here: .*use the program that registers it' err || wrong "the unknown family: $(tail -1 err)"

printf 'the cat sleeps\nthe dog runs\nthe river is deep\na cat runs\nthe dog is deep\na river sleeps\n' >s.en
printf 'die Katze schläft\nder Hund läuft\nder Fluss ist tief\neine Katze läuft\nder Hund ist tief\nein Fluss schläft\n' >s.de
survives translator rotary-tiny s.en,s.de dropout=0.1
run ./translator train rotary-tiny --train s.en,s.de --valid s.en,s.de --out learned
for beam in 1 4; do
    ./translator translate learned --beam $beam <s.en >out 2>err || wrong "translate: $(tail -1 err)"
    cmp s.de out || wrong "beam $beam: not what was learned: $(head -2 out)"
done
run ./translator evaluate learned --data s.en,s.de --json
grep -q '"bleu": *100' out || wrong "evaluate: $(cat out)"
for kind in encoder decoder cross; do
    run ./translator attention learned --source 'the river is deep' --kind $kind --out $kind.json
    grep -q "\"kind\": *\"$kind\"" $kind.json || wrong "attention wrote no map of kind $kind"
done

# A recurrent model: its cache is a state, and more text than the context holds is generated with it as without.
survives ssm ssm-small "$story" batch=4
run ./ssm train ssm-small --train "$story" --valid "$story" --out recomputed --steps 24 --set valid_every=15 --set batch=4 --set checkpoint=true
cmp recomputed/model.safetensors ssm.straight/model.safetensors || wrong 'checkpoint=true trains other weights of ssm'
for seed in 3 4; do
    run ./ssm generate ssm.straight --prompt 'The moon ' --max-tokens 150 --seed $seed
    mv out cached
    [ "$(wc -m <cached)" -ge 150 ] || wrong "generated only: $(cat cached)"
    run ./ssm generate ssm.straight --prompt 'The moon ' --max-tokens 150 --seed $seed --no-cache
    cmp cached out || wrong 'the text generated without the cache of states differs'
done

# The balance of a mixture of experts is a term of what is trained, and not of what is measured.
survives moe moe-small "$story" accumulate=3
grep -q '"loss/train":.*"loss/train_minimized":.*"balance/train":' moe.straight/metrics.jsonl || wrong "no balance: $(cat moe.straight/metrics.jsonl)"
grep '"event":"valid"' moe.straight/metrics.jsonl | grep -q 'balance\|minimized' && wrong 'a validation has the balance'
run ./moe train moe-small --train "$story" --valid "$story" --out unbalanced --steps 24 --set balance=0
grep -q '"balance/train":0[.,]' unbalanced/metrics.jsonl || wrong 'balance=0 has a balance'
cmp unbalanced/model.safetensors moe.straight/model.safetensors >cmp.out 2>&1 && wrong 'balance=0 trains the same weights'

# An optimiser of the program's own trains a model of the zoo; its state is resumed, and its keys are those of the run.
small='optimizer=adamax --set lr=3e-4 --set adamax.beta1=0.95 --set d_model=32 --set heads=2 --set d_ff=64 --set layers=1'
run ./adamax models char-rms
grep -A4 '^with optimizer=adamax:$' out | grep -q '^  adamax.beta2=0.999 ' || wrong "models char-rms: $(tail -6 out)"
survives adamax char-rms "$story" "$small"
run ./adamax inspect adamax.straight
grep -q '^optimizer: adamax$' out || wrong "inspect: $(cat out)"
grep -q '^adamax.beta1: 0.95$' out || wrong "inspect: $(cat out)"
grep -q '^adamax.beta2: 0.999$' out || wrong "inspect: $(cat out)"
run ./adamax inspect adamax.straight/state.safetensors
grep -q '^adamax.m.embed.weight ' out || wrong "the state: $(cat out)"
run ./adamax train --help
mv out help
grep -q '^  adamax.beta2  *decay rate of the largest gradient' help || wrong "help: $(grep -A5 'of optimizer' help)"
run ./adamax train char-rms --train "$story" --valid "$story" --out adamax.straight --resume --steps 41 --set adamax.beta2=0.98
grep -q 'adamax.beta2 0.98 instead of 0.999' err || wrong "a changed key: $(cat err)"
./adamax train char-rms --train "$story" --valid "$story" --out adamax.straight --resume --set optimizer=adamw 2>err && wrong 'a resume changed the optimiser'
grep -q 'trained with optimizer = adamax: a resume cannot change it to adamw' err || wrong "another optimiser: $(tail -1 err)"
./adamax train char-rms --train "$story" --out x --set optimizer=adamox 2>err && wrong 'an unknown optimiser was taken'
grep -q '"adamox" is not one of adamw, sgd, lion, adafactor, muon or adamax: ' err || wrong "the unknown optimiser: $(tail -1 err)"
./adamax train char-rms --train "$story" --out x --set optimizer=adamax --set beta2=0.9 2>err && wrong "AdamW's key was taken"
grep -q "beta2 is AdamW's, and optimizer is adamax: set adamax.beta2" err || wrong "AdamW's key: $(tail -1 err)"
"$build/cli/weft" train char-rms --train "$story" --valid "$story" --out adamax.straight --resume 2>err && wrong 'weft resumed with an optimiser that it does not know'
grep -q '"adamax" is not one of adamw, sgd, lion, adafactor or muon: .*use the program that registers it' err || wrong "the optimiser of another program: $(tail -1 err)"
# Help and messages name the program.
for command in models train generate translate embed evaluate average bleu attention plot inspect bench 'tokenizer train' 'tokenizer info' 'tokenizer survey'; do
    # shellcheck disable=SC2086
    run ./adamax $command --help
    sed 1d out | grep 'weft ' && wrong "adamax $command --help names another program"
    # shellcheck disable=SC2086
    ./adamax $command one two three four </dev/null >out 2>&1 || true
    grep 'weft [a-z$]\|\$0' out && wrong "adamax $command one two three four names another program"
done
grep -q '^Keys for --set KEY=VALUE.*.adamax models MODEL.' help || wrong "train --help: $(grep Keys help)"
./adamax train char-rms --train "$story" 2>err && wrong 'adamax trained without --out'
grep -q '^adamax: adamax train needs --out RUN' err || wrong "without --out: $(cat err)"
./adamax generate 2>err && wrong 'adamax generated without a run'
grep -q '^adamax: RUN is missing: adamax generate RUN; RUN is the --out of adamax train' err || wrong "without RUN: $(cat err)"
./adamax train x --train "$story" --out x 2>err && wrong 'an unknown model was trained'
grep -q 'unknown model "x": the command .models. lists them' err || wrong "an unknown model: $(cat err)"

# Without the program its run can be used, and is not trained.
for program in ./adamax "$build/cli/weft"; do
    run "$program" generate adamax.straight --prompt 'The ' --max-tokens 40 --seed 3
    mv out "text.${program##*/}"
    run "$program" evaluate adamax.straight --data "$story" --json
    mv out "loss.${program##*/}"
done
cmp text.adamax text.weft || wrong 'the plain command generates another text'
cmp loss.adamax loss.weft || wrong 'the plain command measures another loss'
run "$build/cli/weft" average adamax.straight --last 2 --out adamax.mean
run "$build/cli/weft" inspect adamax.mean
grep -q '^optimizer: adamax$' out || wrong "inspect by the plain command: $(cat out)"
run ./adamax inspect adamax.mean
grep -q '^adamax.beta1: 0.95$' out || wrong "the keys after an average: $(cat out)"
"$build/cli/weft" train --config adamax.straight/config.json --train "$story" --out y 2>err && wrong 'weft trained with an optimiser that it does not know'
grep -q '"adamax" is not one of adamw, sgd, lion, adafactor or muon: .*use the program that registers it' err || wrong "another program's config.json: $(tail -1 err)"
run "$build/cli/weft" train char-rms --from adamax.straight --train "$story" --out further --steps 1
finish
