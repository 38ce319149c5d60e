# SPDX-License-Identifier: MIT
# Files of other formats, given where weights, a run, a tokenizer, a configuration or a text is expected, are called what they are.
. "$2/tests/cli/lib.sh"

printf 'version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n' >lfs
printf '\n<!DOCTYPE html>\n<html><body>404: not found</body></html>\n' >page
printf 'GGUF\003\000\000\000\000\000\000\000\000\000\000\000' >gguf
printf 'PK\003\004\000\000\010\010\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\020\000\000\000archive/data.pkl\200\002}q' >pytorch
printf '\200\002\212\012\154\374\234\106\371\040\152\250\120\031.\200\002M\351\003.' >old_pytorch
printf '\200\004\225\013\000\000\000\000\000\000\000}\224.' >pickle
printf 'PK\003\004\024\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\005\000\000\000a.txthello' >zip
printf '\223NUMPY\001\000\166\000{}' >npy
gzip -c "$story" >gzip
says='Git LFS pointer, not the file itself: run git lfs pull
gguf: is a GGUF file
pytorch: is a pickle of PyTorch: save it as safetensors
pickle of PyTorch
pickle of Python
zip: is a zip archive
npy: is an array of NumPy
gzip: is compressed with gzip'
n=0
for file in lfs gguf pytorch old_pytorch pickle zip npy gzip; do
    n=$((n + 1))
    part=$(printf '%s\n' "$says" | sed -n "${n}p")
    expect 1 "$part" "$weft" inspect $file
    expect 1 "$part" "$weft" generate $file
    expect 1 "$part" "$weft" train char-rms --train "$story" --from $file --out no
    expect 1 "$part" "$weft" train char-rms --train $file --out no
    expect 1 "$part" "$weft" train char-rms --train "$story" --config $file --out no
    expect 1 "$part" "$weft" tokenizer train --type bpe --out no.json $file
    expect 1 "$part" sh -c '"$1" tokenizer encode "$2" <"$3"' sh "$weft" $file "$story"
done
# a page may be a text, but no weights
for command in inspect generate 'tokenizer info'; do
    # shellcheck disable=SC2086
    expect 1 'page: is a page of HTML' "$weft" $command page
done
"$weft" tokenizer train --type char --out page.json page 2>err || failed "a page is a text: $(cat err)"
# larger than a tokenizer or a configuration may be
cp pytorch large
truncate -s 2G large
expect 1 'large: is a pickle of PyTorch' "$weft" tokenizer info large

# --- what is supported is listed
mkdir other
printf '{"model_type": "gpt9"}' >other/config.json
expect 1 'models of the type "gpt9" are not supported; these types are: gpt2, llama, mistral, qwen2, qwen3, phi3, gemma2, gemma3_text, bert' "$weft" generate other
printf '{"version": "1.0", "model": {"type": "Unigram", "vocab": []}}' >unigram.json
expect 1 'the model "Unigram" is not supported by this version; these are: ' "$weft" tokenizer info unigram.json
grep -q 'WordPiece' message || failed "no list of models: $(cat message)"

# --- a folder of Hugging Face of which the download broke: one line says which file and what to do, and nothing is written
golden=$source/tests/golden/decoders/phi3
for i in 1 2 3 4 5 6 7 8 9 10 11 12; do printf 'abc def ghi jkl mno pqr stu vw bcd efg hij klm %s' ''; done >letters
# broken WORDS: generate, convert, train --from and, unless reads is empty, inspect say this about FOLDER
broken() {
    [ -z "$reads" ] || expect 1 "$1" "$weft" inspect FOLDER
    expect 1 "$1" "$weft" convert FOLDER new
    [ ! -e new ] && [ ! -e .new.weft-part ] || failed "convert leaves something: $1"
    expect 1 "$1" "$weft" generate FOLDER --prompt abc
    expect 1 "$1" "$weft" train --from FOLDER --train letters --out trained --steps 1
    [ -z "$(ls -A trained 2>/dev/null)" ] || failed "train leaves something: $1"
}
# whole; shards: FOLDER as it should be, with its weights in one file; in several
whole() {
    rm -rf FOLDER
    cp -r "$golden" FOLDER
    chmod -R u+w FOLDER
}
shards() {
    rm -rf FOLDER
    "$weft" convert "$golden" FOLDER --to hf --shard-size 5KB 2>err || failed "shards: $(cat err)"
}
index=FOLDER/model.safetensors.index.json
for piece in model.safetensors config.json tokenizer.json; do
    reads=$piece
    [ $piece = tokenizer.json ] && reads=
    whole
    cp lfs FOLDER/$piece
    broken "FOLDER/$piece: is a Git LFS pointer, not the file itself: run git lfs pull"
    cp page FOLDER/$piece
    broken "FOLDER/$piece: is a page of HTML, as a download that failed leaves it: download it again"
    : >FOLDER/$piece
    [ $piece = model.safetensors ] && broken "FOLDER/$piece: not a safetensors file: 0 bytes: if it was copied or downloaded, do so again"
    head -c 250 "$golden/$piece" >FOLDER/$piece
    broken 'is it truncated? Copy or download it again'
    grep -q "FOLDER/$piece" message || failed "$piece is not named: $(cat message)"
done
reads=all
whole
head -c 9000 "$golden/model.safetensors" >FOLDER/model.safetensors
broken 'FOLDER/model.safetensors: tensor "model.layers.0.mlp.gate_up_proj.weight": ends '
rm FOLDER/model.safetensors
broken 'FOLDER/model.safetensors is missing: the folder has config.json but no weights: download model.safetensors, or '
: >FOLDER/pytorch_model.bin
broken 'FOLDER/model.safetensors is missing: pytorch_model.bin is not supported: save the model as safetensors'
shards
second=$(ls FOLDER/model-00002-of-0000?.safetensors)
cp "$second" second
cp $index index
cp lfs "$second"
broken "$second: is a Git LFS pointer, not the file itself: run git lfs pull"
cp page "$second"
broken "$second: is a page of HTML"
head -c 1500 second >"$second"
broken "$second: tensor "
grep -q 'is it truncated? Copy or download it again' message || failed "no advice: $(cat message)"
rm "$second"
broken "$second is missing, but $index says that tensors are in it: is the download complete?"
cp second "$second"
sed 's/model-00002-of/other-00002-of/' index >$index
broken "is missing, but $index says that tensors are in it: is the download complete?"
cp page $index
broken "$index: is a page of HTML"
head -c 300 index >$index
broken "$index:"
rm $index
broken 'FOLDER/model.safetensors is missing: its weights are in several files: download model.safetensors.index.json, which lists these'

# --- weights that another process cuts while a command uses them: one line, not a signal
small='--steps 1 --set d_model=64 --set context=64 --set valid_tokens=0'
# shellcheck disable=SC2086
"$weft" train char-rms --train "$story" $small --set layers=2 --set heads=2 --set d_ff=128 --set batch=2 --out language 2>log || failed "train: $(tail -1 log)"
# shellcheck disable=SC2086
"$weft" train encoder-attention --train "$story" $small --set heads=2 --set d_ff=128 --out encoder 2>log || failed "train: $(tail -1 log)"
# harm RUN HOW SAYS COMMAND...: the command reads a fifo on standard input. Once its weights are mapped, another program changes them: HOW
harm() {
    run=$1 how=$2 says=$3
    shift 3
    cp $run/model.safetensors whole_weights
    mkfifo fifo
    "$@" <fifo >out 2>err &
    pid=$!
    exec 3>fifo
    rm fifo
    until grep -q "$run/model.safetensors" /proc/$pid/maps; do
        kill -0 $pid || { failed "$1 $2: it ended: $(cat err)"; return; }
        sleep 0.02
    done
    sleep 0.1
    $how $run/model.safetensors
    (trap "" PIPE && echo "once upon a time there was" >&3) 2>pipe || true # the command may have ended
    exec 3>&-
    status=0
    wait $pid || status=$?
    [ $status = 1 ] || failed "$how, $2: exit status $status: $(cat err)"
    grep -q "$run/model.safetensors: $says while its weights were in use: restore it, and start again" err || failed "$how, $2: $(cat err)"
    mv whole_weights $run/model.safetensors
}
cut_weights() { truncate -s 4096 "$1"; }
rewrite() { cat whole_weights >"$1"; } # in place
harm language cut_weights 'was truncated' "$weft" generate language --map always --prompt o --max-tokens 1000000000
harm language cut_weights 'was truncated' "$weft" generate language --map always --input - --max-tokens 100
harm encoder cut_weights 'was truncated' "$weft" embed encoder --map always
harm language rewrite 'was changed' "$weft" generate language --map always --input -
echo once | "$weft" embed encoder >out 2>err || failed "embed: $(cat err)"

# --- a folder as text leaves nothing behind
expect 1 '.: is a folder, not a file' "$weft" train char-rms --train . --out none
[ ! -e none ] || failed 'a run was begun'
finish
