# SPDX-License-Identifier: MIT
# The setting `optimizer`: SGD and its keys, in runs and in files; what is refused; and that a run has AdamW without it.
. "$2/tests/cli/lib.sh"
small="--set layers=1 --set d_model=16 --set heads=2 --set d_ff=32 --set context=16 --set batch=4 --set dropout=0.1 --set valid_tokens=0"
# shellcheck disable=SC2086
train() { "$weft" train char-rms --train "$story" $small "$@"; }
setting() { "$weft" inspect "$1" | sed -n "s/^$2: //p"; }

# --- SGD is another training than AdamW, with momentum another one than without; the order of --set is free
sgd='--set sgd.momentum=0.9 --set optimizer=sgd --set lr=0.1'
train --out adamw --steps 6 2>log || failed "adamw: $(tail -1 log)"
train --out named --steps 6 --set optimizer=adamw 2>log || failed "adamw by name: $(tail -1 log)"
# shellcheck disable=SC2086
train --out sgd --steps 6 $sgd 2>log || failed "sgd: $(tail -1 log)"
train --out plain --steps 6 --set optimizer=sgd --set lr=0.1 2>log || failed "sgd without momentum: $(tail -1 log)"
cmp adamw/state.safetensors named/state.safetensors || failed 'optimizer=adamw is not the default'
for other in adamw plain; do
    cmp -s sgd/model.safetensors $other/model.safetensors && failed "sgd trains the weights of $other"
done
[ "$(setting sgd optimizer) $(setting sgd sgd.momentum) $(setting sgd sgd.nesterov)" = 'sgd 0.9 false' ] || failed "$("$weft" inspect sgd | head -40)"
"$weft" inspect sgd/state.safetensors | grep -q '^sgd.momentum.embed.weight ' || failed 'the state has no momentum'
"$weft" inspect plain/state.safetensors | grep -q '^sgd.momentum' && failed 'there is a state without momentum'
"$weft" inspect adamw/state.safetensors | grep -q '^adam.v.embed.weight ' || failed 'the names in the state of AdamW'

# --- resumed to the same bytes, by the run's own settings; from a config.json too
# shellcheck disable=SC2086
train --out resumed --steps 3 $sgd 2>log || failed "three steps: $(tail -1 log)"
"$weft" train char-rms --train "$story" --out resumed --resume --steps 6 2>log || failed "resume: $(tail -1 log)"
cmp sgd/state.safetensors resumed/state.safetensors || failed 'the state of a resumed training differs'
"$weft" train --config sgd/config.json --train "$story" --out file 2>log || failed "config.json: $(tail -1 log)"
cmp sgd/model.safetensors file/model.safetensors || failed 'the same config.json gave another model'
echo '{"sgd.nesterov": true, "sgd.momentum": 0.5, "optimizer": "sgd"}' >keys.json
train --config keys.json --out keys --steps 1 2>log || failed "a file of keys: $(tail -1 log)"
[ "$(setting keys optimizer) $(setting keys sgd.momentum) $(setting keys sgd.nesterov)" = 'sgd 0.5 true' ] || failed 'the keys of a file'

# --- the other optimisers: a training that is killed while it saves after each update, and resumed, ends with the bytes of one that is not
for rule in lion adafactor muon; do
    common="--set optimizer=$rule --set save_every=1 --set ema=0.9 --set clip_value=0.02 --set schedule=wsd --set decay=20 --set warmup=5"
    # shellcheck disable=SC2086
    train --out $rule --steps 40 $common 2>log || failed "$rule: $(tail -1 log)"
    # shellcheck disable=SC2086
    "$weft" train char-rms --train "$story" $small --out $rule-killed --steps 40 $common 2>log &
    process=$!
    tries=0
    while [ ! -f $rule-killed/state.safetensors ] && [ $tries -lt 300 ]; do
        tries=$((tries + 1))
        sleep 0.02
    done
    kill -9 $process 2>/dev/null || true
    wait $process 2>/dev/null || true
    "$weft" train char-rms --train "$story" --out $rule-killed --resume 2>log || failed "$rule, resumed: $(tail -1 log)"
    cmp $rule/state.safetensors $rule-killed/state.safetensors || failed "$rule: the state of a resumed training differs"
    cmp $rule/ema.safetensors $rule-killed/ema.safetensors || failed "$rule: the averages of a resumed training differ"
    cmp -s $rule/model.safetensors adamw/model.safetensors && failed "$rule trains the weights of AdamW"
done
names() { "$weft" inspect $1/state.safetensors | sed -n "s/^\($1\.[a-z]*\.$2\.weight\) .*/\1/p" | sort | tr '\n' ' '; }
[ "$(names muon embed)$(names muon head)" = 'muon.ema.embed.weight muon.m.embed.weight muon.updates.embed.weight muon.v.embed.weight muon.ema.head.weight muon.m.head.weight muon.updates.head.weight muon.v.head.weight ' ] || failed "embedding and output layer: $(names muon embed)$(names muon head)"
[ "$(names muon blocks.0.ffn.up)" = 'muon.ema.blocks.0.ffn.up.weight muon.momentum.blocks.0.ffn.up.weight muon.updates.blocks.0.ffn.up.weight ' ] || failed "a matrix: $(names muon blocks.0.ffn.up)"
"$weft" inspect adafactor/state.safetensors | grep -q '^adafactor.row.blocks.0.ffn.up.weight  *F32  *\[32,1\]' || failed 'the rows of Adafactor'
# every family of the zoo: resumed, to the same weights
printf 'one two\ntwo one\nthree two one\none\n' >s.en
printf 'eins zwei\nzwei eins\ndrei zwei eins\neins\n' >s.de
sizes='--set layers=2 --set d_model=16 --set heads=2 --set d_ff=32 --set batch=4 --set context=16'
family()
{
    preset=$1
    shift
    for rule in lion adafactor muon; do
        "$weft" train "$preset" --set optimizer=$rule --out $preset-$rule --steps 4 "$@" 2>log || failed "$preset, $rule: $(tail -1 log)"
        "$weft" train "$preset" --set optimizer=$rule --out $preset-$rule-2 --steps 2 "$@" 2>log || failed "$preset, $rule, 2 steps: $(tail -1 log)"
        "$weft" train "$preset" --resume --out $preset-$rule-2 --steps 4 "$@" 2>log || failed "$preset, $rule, resumed: $(tail -1 log)"
        cmp $preset-$rule/model.safetensors $preset-$rule-2/model.safetensors || failed "$preset, $rule: resumed to other weights"
    done
    cmp -s $preset-lion/model.safetensors $preset-muon/model.safetensors && failed "$preset: lion and muon train the same weights"
    state=$preset-muon/state.safetensors
    "$weft" inspect $state | grep -q '^muon\.momentum\.' || failed "$preset: muon has no matrices"
    "$weft" inspect $state | grep '^muon\.momentum\..*\(embed\|positions\|segments\|head\)\.weight' && failed "$preset: a table is a matrix of muon"
}
# shellcheck disable=SC2086
family nanogpt-char --train "$story" $sizes
# shellcheck disable=SC2086
family smollm2-135m --train "$story" $sizes --set kv_heads=1 --set tokenizer=char
# shellcheck disable=SC2086
family phi3-mini --train "$story" $sizes --set tokenizer=char
# shellcheck disable=SC2086
family gemma3-270m --train "$story" $sizes --set kv_heads=1 --set d_key=8 --set tokenizer=char
# shellcheck disable=SC2086
family encoder-attention --train "$story" $sizes
# shellcheck disable=SC2086
family bert --train "$story" $sizes --set tokenizer=word
family seq2seq-tiny --train s.en,s.de

# the learning rates: rise, peak, decay
rates() { sed -n 's/.*"event":"step","step":\([0-9]*\),.*"lr":\([^,}]*\).*/\1:\2/p' "$1/metrics.jsonl" | sed 's/0000000000000*[1-9]$//' | tr '\n' ' '; }
train --out wsd --steps 20 --set schedule=wsd --set lr=0.01 --set warmup=4 --set decay=10 --set min_lr=0.005 --set log_every=5 2>log || failed "wsd: $(tail -1 log)"
[ "$(rates wsd)" = '1:0.002 5:0.01 10:0.01 15:0.008 20:0.0055 ' ] || failed "schedule=wsd: $(rates wsd)"
train --out cycle --steps 20 --set schedule=one_cycle --set curve=linear --set lr=0.01 --set start_lr=0.002 --set warmup=5 --set log_every=5 2>log || failed "one_cycle: $(tail -1 log)"
[ "$(rates cycle | cut -c1-16)" = '1:0.002 5:0.01 1' ] || failed "schedule=one_cycle: $(rates cycle)"
train --out linear --steps 20 --set schedule=linear --set lr=0.01 --set log_every=10 2>log || failed "linear: $(tail -1 log)"
[ "$(rates linear)" = '1:0.01 10:0.0055 20:0.0005 ' ] || failed "schedule=linear: $(rates linear)"

# --- what a resume may change, and what not
cp -r sgd changed
"$weft" train char-rms --train "$story" --out changed --resume --steps 7 --set sgd.momentum=0.8 2>log || failed "another momentum: $(tail -1 log)"
grep -q 'sgd.momentum 0.8 instead of 0.9' log || failed "another momentum: $(cat log)"
expect 2 'was trained with optimizer = sgd: a resume cannot change it to adamw' "$weft" train char-rms --train "$story" --out sgd --resume --set optimizer=adamw
expect 2 'was trained with optimizer = adamw: a resume cannot change it to sgd' "$weft" train char-rms --train "$story" --out adamw --resume --set optimizer=sgd
expect 1 'plain/state.safetensors: the state does not match the optimiser: ' "$weft" train char-rms --train "$story" --out plain --resume --steps 7 --set sgd.momentum=0.9
expect 1 ': slab momentum is not in use with the present settings' "$weft" train char-rms --train "$story" --out sgd --resume --steps 7 --set sgd.momentum=0
expect 1 'missing: sgd.momentum.' "$weft" train char-rms --train "$story" --out plain --resume --steps 7 --set sgd.momentum=0.9

# --- a run that is older than the key
train --out older --steps 3 2>log || failed "three steps of adamw: $(tail -1 log)"
LC_ALL=C sed 's/"config.optimizer"/"config.xxxxxxxxx"/' older/state.safetensors >state && mv state older/state.safetensors
grep -v '"optimizer"' older/config.json >less.json && mv less.json older/config.json
"$weft" train char-rms --train "$story" --out older --resume --steps 6 2>log || failed "an older state: $(tail -1 log)"
cmp older/state.safetensors adamw/state.safetensors || failed 'an older run resumes to another state'
grep -v '"optimizer"' adamw/config.json >less.json && mv less.json adamw/config.json
"$weft" generate adamw --max-tokens 5 >text 2>err || failed "an older config.json: $(cat err)"

# --- the keys are listed where the message for an unknown one sends the reader
"$weft" models char-rms >listed || failed "models char-rms: exit code $?"
[ "$(sed -n '/^with optimizer=sgd:$/{n;p;}' listed | cut -c1-18)" = '  sgd.momentum=0  ' ] || failed "models char-rms: $(tail -5 listed)"

# --- wrong ones
expect 2 '--set optimizer=tiger: optimizer: "tiger" is not one of adamw, sgd, lion, adafactor or muon: ' train --out r --set optimizer=tiger
expect 2 "beta1 is AdamW's, and optimizer is muon: set muon.beta1" train --out r --set optimizer=muon --set beta1=0.8
expect 2 "beta1 is AdamW's, and optimizer is adafactor: leave it out" train --out r --set optimizer=adafactor --set beta1=0.8
expect 2 'muon.adjust: "adam" is not one of match_rms_adamw, original or none' train --out r --set optimizer=muon --set muon.adjust=adam
expect 2 'schedule: "stairs" is not one of constant, cosine, inverse_sqrt, linear, wsd or one_cycle' train --out r --set schedule=stairs
expect 2 'sgd.momentum is a key of optimizer=sgd, and optimizer is adamw: set optimizer=sgd first' train --out r --set sgd.momentum=0.9
expect 2 "beta1 is AdamW's, and optimizer is sgd: leave it out" train --out r --set beta1=0.5 --set optimizer=sgd
expect 2 'sgd.nesterov needs sgd.momentum above 0' train --out r --set optimizer=sgd --set sgd.nesterov=true
expect 2 'sgd.momentum: 1 is out of range: at least 0 and below 1' train --out r --set optimizer=sgd --set sgd.momentum=1
expect 2 'unknown key "sgd.momentun": did you mean sgd.momentum?' train --out r --set optimizer=sgd --set sgd.momentun=1
expect 2 'unknown key "momentum": did you mean sgd.momentum?' train --out r --set optimizer=sgd --set momentum=0.9
echo '{"optimizer": "tiger"}' >lion.json
expect 1 'lion.json: optimizer: "tiger" is not one of adamw, sgd, lion, adafactor or muon' train --config lion.json --out r
echo '{"sgd.momentum": 0.5}' >lion.json
expect 1 'lion.json: sgd.momentum is a key of optimizer=sgd' train --config lion.json --out r
echo '{"optimizer": 1}' >lion.json
expect 1 'lion.json: key "optimizer"' train --config lion.json --out r
[ ! -e r ] || failed 'a wrong call left a folder behind'
finish
