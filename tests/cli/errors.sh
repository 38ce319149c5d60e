# SPDX-License-Identifier: MIT
# Bad input: a clear line each, the right exit code, nothing lost.
. "$2/tests/cli/lib.sh"

small='--set layers=1 --set d_model=16 --set heads=2 --set d_ff=32 --set context=16 --set batch=2 --steps 4'
# shellcheck disable=SC2086
train() { "$weft" train "$@"; }

# --- usage
expect 2 "unknown command 'weft trian'; did you mean train?" "$weft" trian
expect 2 'did you mean --steps?' train char-rms --train "$story" --out r --stesp 3
expect 2 'did you mean char-rms?' train char-rsm --train "$story" --out r
expect 2 'MODEL is missing' train --train "$story" --out r
expect 2 'needs --train' train char-rms --out r
expect 2 'needs --out' train char-rms --train "$story"
expect 2 'one argument too many' train char-rms extra --train "$story" --out r
expect 2 'dropout' train char-rms --train "$story" --out r --set dropuot=0.1
expect 2 'dropout' train char-rms --train "$story" --out r --set dropout=1.5
expect 2 'heads' train char-rms --train "$story" --out r --set heads=5
expect 2 'd_model' train char-rms --train "$story" --out r --set d_model=1000000000
expect 2 'KEY=VALUE' train char-rms --train "$story" --out r --set dropout
expect 2 'lr' train char-rms --train "$story" --out r --set lr=abc
expect 2 'activation' train char-rms --train "$story" --out r --set activation=rleu
expect 2 '--steps' train char-rms --train "$story" --out r --steps 0
expect 2 '--threads' train char-rms --train "$story" --out r --threads 100000
expect 2 '--temperature' "$weft" generate r --temperature -1
expect 2 '--prompt and --prompt-file both give the prompt' "$weft" generate r --prompt a --prompt-file b
expect 2 '--seed 9223372036854775807 leaves no seeds for 2 samples' "$weft" generate r --seed 9223372036854775807 --samples 2
expect 2 '--top-p' "$weft" generate r --top-p 1.5
expect 2 'needs --data' "$weft" evaluate r
expect 2 'nanogpt-char-small' "$weft" bench nanogpt-char-smal
# --- names of other programs: option | what is said
while IFS='|' read -r option says; do
    expect 2 "unknown option $option of 'weft train'; $says" train char-rms --train "$story" --out r "$option" 1
done <<'EOF'
--lr|it is a setting: --set lr=...
--learning-rate|it is a setting: --set lr=...
--learning_rate|it is a setting: --set lr=...
--batch_size|it is a setting: --set batch=...
--batch-size|it is a setting: --set batch=...
--n_layer|it is a setting: --set layers=...
--n_head|it is a setting: --set heads=...
--n_embd|it is a setting: --set d_model=...
--block_size|it is a setting: --set context=...
--dropout|it is a setting: --set dropout=...
--weight_decay|it is a setting: --set weight_decay=...
--weight-decay|it is a setting: --set weight_decay=...
--warmup-updates|it is a setting: --set warmup=...
--max_iters|use --steps N
--max-update|use --steps N
--max_steps|use --steps N
--output_dir|use --out RUN
--init_from|use --from RUN
--max_time|use --max-time TIME
EOF
expect 2 "unknown option --lr of 'weft train'; it is a setting: --set lr=..." train char-rms --lr=1e-3
expect 2 "unknown option --max-new-tokens of 'weft generate'; use --max-tokens N" "$weft" generate r --max-new-tokens 5
expect 2 "unknown option --num_beams of 'weft translate'; use --beam N" "$weft" translate r --num_beams 5
expect 2 "unknown option --n_layer of 'weft bench'; it is a setting: --set layers=..." "$weft" bench --n_layer 5
"$weft" generate r --lr 1 2>err && failed 'generate --lr' # it takes no settings
grep -q 'setting' err && failed "generate --lr: $(cat err)"
expect 2 '--set learning_rate=1e-3: no setting learning_rate; use lr' train char-rms --train "$story" --out r --set learning_rate=1e-3
expect 2 '--set max_iters=9: no setting max_iters; use --steps N' train char-rms --train "$story" --out r --set max_iters=9
expect 2 '--set seed=9: no setting seed; use --seed N' train char-rms --train "$story" --out r --set seed=9
expect 2 '--set resume=true: no setting resume; use --resume' train char-rms --train "$story" --out r --set resume=true
expect 2 'num_hidden_layers; use encoder_layers and decoder_layers' train multi30k --train "$story,$story" --out r --set num_hidden_layers=2
[ ! -e r ] || failed "a wrong call left a folder behind"
WEFT_ISA=avx1024 expect 2 'WEFT_ISA' train char-rms --train "$story" --out r
WEFT_CACHE_LIMIT=foo expect 2 'WEFT_CACHE_LIMIT: "foo" is not a number of bytes' train char-rms --train "$story" --out r
WEFT_GEMM=mine expect 2 'WEFT_GEMM' train char-rms --train "$story" --out r

expect 2 '--steps needs a value' train char-rms --train "$story" --out r --steps
expect 2 '--out needs a value: --out RUN' train char-rms --train "$story" --out ''
expect 2 '--weights needs a value' "$weft" generate r --weights=
expect 2 "an argument of 'weft inspect' is empty" "$weft" inspect ''
expect 2 "an argument of 'weft plot' is empty" "$weft" plot r ''
expect 2 "an argument of 'weft tokenizer info' is empty" "$weft" tokenizer info ''
expect 2 '--resume takes no value' train char-rms --train "$story" --out r --resume=1
expect 2 '--s is ambiguous' train char-rms --train "$story" --out r --s 3
expect 2 '--train is given twice; name several files as --train a.txt,b.txt' train char-rms --train "$story" --out r --train=no.txt
expect 2 '--data is given twice; name several files as' "$weft" evaluate r --data a --data b
expect 2 '--specials is given twice; separate several values by commas' "$weft" tokenizer train --specials a --specials b --out t x
expect 2 '--out is given twice' train char-rms --train "$story" --out r --out s
expect 2 'unknown option -x' train char-rms -x
# --- what there is to set, and of which cases
"$weft" train --help >help 2>err || failed 'train --help'
for key in patience keep save_every valid_every accumulate batch_tokens label_smoothing; do
    grep -q "^  $key  *[a-z]" help || failed "train --help does not list $key"
done
for model in char-rms multi30k encoder-attention; do # each key of a model has its place in the help
    "$weft" models $model | sed -n 's/^  \([a-z_0-9]*\)=.*/\1/p' >keys
    [ -s keys ] || failed "models $model lists no keys"
    while read -r key; do
        grep -q "^  $key  *[a-zA-Z]" help || failed "train --help does not list $key"
    done <keys
done
grep -q 'validations in a row' help || failed 'train --help does not say what patience is'
"$weft" models multi30k >settings 2>err || failed "models multi30k: $(cat err)"
grep -q '^  batch_tokens=4096  *tokens per update' settings || failed "models multi30k: $(head -3 settings)"
grep -q '^  context=' settings && failed 'models lists a key that the model does not use'
expect 2 'did you mean multi30k?' "$weft" models multi3k
"$weft" bench --help | grep -q '^  transformer-base ' || failed 'bench --help names no case'
expect 2 'bench --help' "$weft" bench nope
"$weft" help train | cmp - help || failed 'weft help train is not weft train --help'
"$weft" tokenizer train --help >help && [ -s help ] || failed 'tokenizer train --help'
"$weft" help tokenizer train | cmp - help || failed 'weft help tokenizer train is not weft tokenizer train --help'
"$weft" generate --usage | grep -q '^Usage: weft generate \[--prompt=TEXT\] .* RUN$' || failed 'generate --usage'
[ "$("$weft" generate -V)" = "$("$weft" --version)" ] || failed 'generate -V'
"$weft" generate --help >help && "$weft" generate '-?' | cmp - help || failed 'generate -?'
"$weft" -h | grep -q '^Usage: weft COMMAND' || failed 'weft -h'
expect 2 "unknown command 'weft nope'" "$weft" help nope
expect 2 'lr: "1e999" is out of range' train char-rms --train "$story" --out r --set lr=1e999
expect 2 'batch: 1e+20 is out of range' train char-rms --train "$story" --out r --set batch=99999999999999999999

expect 1 'standard output' sh -c '"$1" --help >/dev/full' sh "$weft"
expect 1 'standard output' sh -c '"$1" train --help >/dev/full' sh "$weft"
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
    chmod 755 "$work"
    expect 1 'ermission denied' setpriv --reuid=65534 --regid=65534 --clear-groups "$weft" train char-rms --train "$story" --out "$work/denied"
fi

# --- text
: >empty.txt
printf 'one\ntwo \377 three\n' >bad.txt
printf 'too short' >short.txt
expect 1 'no-such.txt' train char-rms --train no-such.txt --out r
expect 1 'empty.txt' train char-rms --train empty.txt --out r
expect 1 'bad.txt:2:5' train char-rms --train bad.txt --out r
expect 1 "$work" train char-rms --train "$work" --out r
mkfifo pipe
expect 1 'pipe is a pipe' timeout 20 "$weft" train char-rms --train pipe --out r
if [ "$(id -u)" != 0 ]; then
    cp "$story" secret.txt && chmod 000 secret.txt
    expect 1 'secret.txt' train char-rms --train secret.txt --out r
fi
"$weft" train char-rms --train short.txt --out r >out 2>err && failed 'a text shorter than the context was trained on'
grep -q 'context' err || failed "no word of the context: $(cat err)"
expect 1 'no-such.txt' train char-rms --train "$story,no-such.txt" --out r

# --- runs
# shellcheck disable=SC2086
train nanogpt-char-small --train "$story" --out run $small 2>/dev/null || failed 'a small training'
cp -r run good
# shellcheck disable=SC2086
expect 1 '--resume' train nanogpt-char-small --train "$story" --out run $small
cmp -s run/model.safetensors good/model.safetensors || failed 'a refused training changed the run'
expect 2 'char-rms' train char-rms --train "$story" --out run --resume
# shellcheck disable=SC2086
expect 2 'd_model' train nanogpt-char-small --train "$story" --out run --resume --set d_model=32
expect 2 'seed' train nanogpt-char-small --train "$story" --out run --resume --seed 9
printf 'another text %s\n' "$(cat "$story")" >other.txt
expect 2 'another text' train nanogpt-char-small --train other.txt --tokenizer run/tokenizer.json --out run --resume --steps 9
cmp -s run/state.safetensors good/state.safetensors || failed 'a refused resume changed the state'
mkdir started && printf '{}' >started/config.json
# shellcheck disable=SC2086
train nanogpt-char-small --train "$story" --out started $small 2>/dev/null || failed 'a folder without a state is no run yet'

expect 1 'U+00E9' "$weft" generate run --prompt "$(printf 'caf\303\251')"
expect 1 'no-run' "$weft" generate no-run
expect 1 'best-of-all' "$weft" generate run --weights best-of-all
expect 1 'U+' "$weft" evaluate run --data "$source/tests/golden/data/emoji.txt"
mkdir hollow && cp run/config.json run/tokenizer.json hollow
expect 1 'model.safetensors' "$weft" generate hollow

# --- checkpoints
damage() { # damage NAME 'MESSAGE': the run with another model.safetensors
    rm -rf broken && cp -r run broken && mv weights broken/model.safetensors
    expect 1 "$2" "$weft" generate broken --max-tokens 3
    expect 1 "model.safetensors" "$weft" inspect broken/model.safetensors
}
head -c 1000 run/model.safetensors >weights && damage truncated 'model.safetensors'
: >weights && damage empty 'model.safetensors'
head -c 3 run/model.safetensors >weights && damage tiny 'model.safetensors'
{ printf '\377\377\377\377\377\377\377\177'; tail -c +9 run/model.safetensors; } >weights && damage header 'model.safetensors'
{ head -c 8 run/model.safetensors; printf 'x'; tail -c +10 run/model.safetensors; } >weights && damage json 'model.safetensors'
# shellcheck disable=SC2086
train char-rms --train "$story" --out rms --steps 2 --set context=16 --set batch=2 2>/dev/null || failed 'char-rms'
rm -rf broken && cp -r run broken && cp rms/model.safetensors broken/
expect 1 'missing' "$weft" generate broken
expect 1 'unexpected' "$weft" generate run --weights rms/model.safetensors
train char-rms --train other.txt --out foreign --steps 1 --set context=16 --set batch=2 --set tokenizer=word 2>/dev/null || failed 'foreign'
expect 1 "another tokenizer than the run's tokenizer: give weights of this run" "$weft" generate run --weights foreign/model.safetensors
# shellcheck disable=SC2086
train nanogpt-char-small --train "$story" --out wide $small --set d_ff=64 2>/dev/null || failed 'a wider model'
expect 1 'another shape' "$weft" generate run --weights wide/model.safetensors
rm -rf broken && cp -r run broken && cp rms/tokenizer.json broken/ && printf '{"d_model": 3' >broken/config.json
expect 1 'config.json' "$weft" generate broken
rm -rf broken && cp -r run broken && head -c 2000 run/state.safetensors >broken/state.safetensors
expect 1 'state.safetensors' train nanogpt-char-small --train "$story" --out broken --resume --steps 9
rm -rf broken && cp -r run broken && cp rms/state.safetensors broken/
expect 2 'char-rms' train nanogpt-char-small --train "$story" --out broken --resume --steps 9

# --- what is not a number of steps to go on to; a state without the rest; weights without a state
cp -r run past
expect 2 'has trained 4 steps already' train nanogpt-char-small --train "$story" --out past --resume --steps 3
rm past/config.json past/tokenizer.json past/model.safetensors
train nanogpt-char-small --train "$story" --out past --resume --steps 6 2>/dev/null || failed 'the state alone is not enough to resume'
"$weft" generate past --max-tokens 3 >/dev/null 2>&1 || failed 'a resume does not bring back what was lost'
cp -r run weights-only && rm weights-only/state.safetensors
# shellcheck disable=SC2086
train nanogpt-char-small --train "$story" --out weights-only $small 2>err || failed "weights without a state: $(tail -1 err)"
grep -q 'warning: .*model.previous-1.safetensors' err || failed 'nothing was said of the old weights'
cmp -s weights-only/model.previous-1.safetensors run/model.safetensors || failed 'old weights were lost'
"$weft" generate run --prompt '--' --max-tokens 2 >out 2>err && failed "a prompt of characters that are unknown passed"
grep -q 'unknown option' err && failed "a prompt was taken for an option: $(cat err)"

# --- a disk that is full while saving: the message, the exit code, and the run as it was
cp -r run full
status=0
(ulimit -f 20 && exec "$weft" train nanogpt-char-small --train "$story" --out full --resume --steps 8 >out 2>err) || status=$?
[ "$status" = 1 ] || failed "exit code $status on a full disk: $(tail -2 err)"
tail -1 err | grep -q 'resume continues from step 4' || failed "no word of what to do: $(tail -1 err)"
tail -1 err | grep -q 'full/.*safetensors' || failed "the message names no file: $(tail -1 err)"
cmp -s full/state.safetensors run/state.safetensors || failed 'a full disk damaged the state'
cmp -s full/model.safetensors run/model.safetensors || failed 'a full disk damaged the weights'
train nanogpt-char-small --train "$story" --out full --resume --steps 8 2>/dev/null || failed 'the run does not go on after a full disk'
expect 1 'standard output' sh -c '"$1" models >/dev/full' sh "$weft"

# --- two processes in one run
"$weft" train nanogpt-char-small --train "$story" --out busy --steps 100000 --set batch=2 2>busy.log &
first=$!
n=0
while ! grep -q 'parameters' busy.log && [ $n -lt 100 ]; do sleep 0.1; n=$((n + 1)); done
expect 1 'another process' train nanogpt-char-small --train "$story" --out busy --resume
kill -INT "$first"
status=0
wait "$first" || status=$?
[ "$status" = 130 ] || failed "Ctrl-C ended with exit code $status: $(tail -2 busy.log)"
[ -f busy/state.safetensors ] || failed 'Ctrl-C did not save'
grep -q 'resume' busy.log || failed "Ctrl-C said nothing of --resume: $(tail -2 busy.log)"

# --- a loss that becomes NaN: the step, and the first tensor that went bad
"$weft" train nanogpt-char-small --train "$story" --out nan --steps 50 --set lr=1e18 --set min_lr=0 --set warmup=0 --set clip=0 \
    --set weight_decay=0 >out 2>err && failed 'a loss that is NaN passed'
tail -1 err | grep -q 'step [0-9]*: .*is not finite; the first bad tensor: [a-z_]*(.*\[.*\]' ||
    failed "the step or the tensor is not named: $(tail -1 err)"
[ ! -e nan/model.safetensors ] || failed 'the bad step was saved'
# a gradient that overflows behind a loss that does not
"$weft" train nanogpt-char-small --train "$story" --out inf --steps 50 --set lr=1e30 --set min_lr=0 --set warmup=0 --set clip=0 \
    --set weight_decay=0 >out 2>err && failed 'a gradient that is not finite passed'
tail -1 err | grep -q "step [0-9]*: the gradient's norm is not finite" || failed "the gradient is not named: $(tail -1 err)"
finish
