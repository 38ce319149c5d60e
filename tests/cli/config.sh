# SPDX-License-Identifier: MIT
# Settings: of a file, of --set, of a run that is older than a key; and what is said of wrong ones.
. "$2/tests/cli/lib.sh"
train() { "$weft" train "$@"; }
setting() { "$weft" inspect "$1" | sed -n "s/^$2: //p"; }

# --- a file of one's own, with and without MODEL; --set comes on top of it
cat >own.json <<'EOF'
{"model": "char-rms", "layers": 2, "d_model": 16, "heads": 2, "d_ff": 32, "context": 16, "batch": 2, "lr": 0.01, "steps": 3}
EOF
train --config own.json --set lr=0.02 --train "$story" --out own 2>log || failed "own file: $(tail -1 log)"
[ "$(setting own model) $(setting own layers) $(setting own lr) $(setting own steps) $(setting own top_k)" = 'char-rms 2 0.02 3 4' ] ||
    failed "own file: $(setting own model) $(setting own layers) $(setting own lr) $(setting own steps) $(setting own top_k)"
echo '{"d_model": 16, "heads": 2, "d_ff": 32, "context": 16, "batch": 2, "steps": 3}' >part.json
train nanogpt-char-small --config part.json --train "$story" --out part 2>log || failed "part of a file: $(tail -1 log)"
[ "$(setting part model) $(setting part d_model) $(setting part layers)" = 'nanogpt-char-small 16 4' ] || failed "part of a file: $(setting part model)"

{ printf '\357\273\277'; cat own.json; } >marked.json # as some editors save it
train --config marked.json --set lr=0.02 --train "$story" --out marked 2>log || failed "a byte order mark: $(tail -1 log)"
cmp own/model.safetensors marked/model.safetensors || failed 'a byte order mark changed the model'

# --- a run's config.json gives the same run again; MODEL can be left out for a resume too
train --config own/config.json --train "$story" --out again 2>log || failed "config.json of a run: $(tail -1 log)"
cmp own/model.safetensors again/model.safetensors || failed 'the same config.json gave another model'
train --config own.json --train "$story" --out own --resume --set lr=0.02 --steps 5 2>log || failed "resume: $(tail -1 log)"
[ "$(setting own steps)" = 5 ] || failed 'the resume did not take --steps'

# --- a run that is older than keys
cp -r again old
for key in clip label_smoothing top_p tokenizer; do
    grep -v "\"$key\"" old/config.json >less.json && mv less.json old/config.json
done
"$weft" generate old --max-tokens 5 >text 2>err || failed "an older config.json: $(cat err)"
"$weft" generate again --max-tokens 5 | cmp - text || failed 'an older config.json gave another text'

# --- errors: about what the user wrote
expect 1 'part.json: the key "model" is missing' train --config part.json --train "$story" --out r
echo '{"model": "char-rms", "layer": 2}' >bad.json
expect 1 'bad.json: unknown key "layer": did you mean layers?' train --config bad.json --train "$story" --out r
expect 1 'no.json' train --config no.json --train "$story" --out r
expect 2 '--set d_model=100: d_model (100) must be a multiple of heads (6)' train nanogpt-char --train "$story" --out r --set steps=3 --set d_model=100
expect 2 '--set heads=7: d_model (384) must be a multiple of heads (7)' train nanogpt-char --train "$story" --out r --set heads=7 --set steps=3
expect 2 '--set min_lr=1: lr (0.001) must be at least min_lr (1)' train nanogpt-char --train "$story" --out r --set steps=3 --set min_lr=1
expect 2 '--set layers=2: layers: multi30k, an encoder-decoder, does not use it: set encoder_layers and decoder_layers' \
    train multi30k --train "$story,$story" --out r --steps 1 --set layers=2
expect 2 'tokenizer: "wordpiece" is not one of char, word, bpe or byte-bpe' train gpt2 --train "$story" --out r --steps 1 --set tokenizer=wordpiece
expect 2 'max_tokens: 0 is out of range: at least 1' train gpt2 --train "$story" --out r --steps 1 --set max_tokens=0
[ ! -e r ] || failed 'a wrong call left a folder behind'
"$weft" models nanogpt-char | grep -q '^  max_tokens=500  *maximum length of a text in tokens (at least 1)' || failed 'models: max_tokens'
# --- a size of the vocabulary where the text alone decides
expect 2 '--set vocab_size=10: a tokenizer of characters has as many entries' train char-rms --train "$story" --out no --set vocab_size=10
[ ! -e no ] || failed 'a folder was made'
finish
