# SPDX-License-Identifier: MIT
# Files in --out that a training would replace are kept under another name, which a warning states.
. "$2/tests/cli/lib.sh"
small="--set d_model=16 --set d_ff=32 --set heads=2 --set layers=1 --set context=16 --set batch=2 --set save_every=2"

# kept FILE: some file of the folder has the content of mine/FILE, and the log has a warning that ends with its name
kept()
{
    for f in run/* run/.lock; do
        if [ -f "$f" ] && cmp -s "mine/$1" "$f"; then
            [ "$f" = "run/$1" ] || grep -q "^weft: warning: .*$1 is now $f\$" log || failed "no warning names $f: $(cat log)"
            return
        fi
    done
    failed "$1 is lost"
}

mkdir mine mine/checkpoints
names="tokenizer.json tokenizer.source.json config.json metrics.jsonl model.safetensors best.safetensors"
names="$names events.out.tfevents.1600000000.me.weft events.out.tfevents.1.other.0 .lock notes.txt"
for f in $names checkpoints/step-00000001.safetensors; do
    echo "mine: $f" >"mine/$f"
done
cp -r mine run
# shellcheck disable=SC2086
"$weft" train char-rms --train "$story" --out run --steps 3 $small 2>log || failed "train: $(tail -1 log)"
for f in $names; do
    kept "$f"
done
cmp -s mine/checkpoints/step-00000001.safetensors run/checkpoints.previous-1/step-00000001.safetensors || failed 'a checkpoint is lost'
for f in tokenizer.source.json notes.txt .lock events.out.tfevents.1.other.0; do
    cmp -s "mine/$f" "run/$f" || failed "$f, which no training of this model writes, was moved"
done
[ -f run/checkpoints/step-00000003.safetensors ] && [ ! -f run/checkpoints/step-00000001.safetensors ] || failed 'old and new checkpoints are mixed'
"$weft" generate run --max-tokens 3 >/dev/null 2>err || failed "the run can't be used: $(cat err)"
[ ! -e run/.weft-new ] && [ ! -e run/.weft-lock ] || failed "left over: $(ls -a run)"

# a second time, of another run: the names that are taken are not used again
rm run/state.safetensors
# shellcheck disable=SC2086
"$weft" train char-rms --train "$story" --out run --steps 2 $small 2>log || failed "again: $(tail -1 log)"
for f in tokenizer.json config.json metrics.jsonl model.safetensors best.safetensors events.out.tfevents.1600000000.me.weft; do
    moved=0
    for g in run/*; do
        [ -f "$g" ] && cmp -s "mine/$f" "$g" && moved=1
    done
    [ $moved = 1 ] || failed "$f is lost by the second training"
done
[ -f run/config.previous-2.json ] && [ -f run/model.previous-2.safetensors ] || failed 'the first run is lost'
grep -q 'tokenizer.json' log && failed "the same tokenizer was set aside: $(cat log)"

# a folder and a link that leads nowhere
mkdir -p odd/model.safetensors
echo inside >odd/model.safetensors/file
ln -s /nonexistent/weights odd/best.safetensors
echo file >odd/checkpoints
# shellcheck disable=SC2086
"$weft" train char-rms --train "$story" --out odd --steps 2 $small 2>log || failed "odd: $(tail -1 log)"
[ -f odd/model.previous-1.safetensors/file ] && [ -L odd/best.previous-1.safetensors ] && [ -f odd/checkpoints.previous-1 ] ||
    failed "a folder or a link is lost: $(ls odd)"

# a file in the place of a folder
mkdir blocked
echo file >blocked/.weft-new
# shellcheck disable=SC2086
expect 1 'blocked/.weft-new: cannot be created: not a folder' "$weft" train char-rms --train "$story" --out blocked --steps 2 $small

# a configuration that was edited, before a resume that changes it
cp run/config.json before.json
sed 's/"temperature": [0-9.]*/"temperature": 0.123/' before.json >run/config.json
cmp -s before.json run/config.json && failed 'nothing was edited'
cp run/config.json edited.json
"$weft" train char-rms --train "$story" --out run --resume --steps 4 2>log || failed "resume: $(tail -1 log)"
grep -q 'config.json is now run/config.previous-3.json' log || failed "an edited configuration: $(cat log)"
cmp -s edited.json run/config.previous-3.json || failed 'an edited configuration is lost'
"$weft" train char-rms --train "$story" --out run --resume --steps 6 2>log || failed "resume: $(tail -1 log)"
grep warning log && failed 'a resume that raises the goal warns'
finish
