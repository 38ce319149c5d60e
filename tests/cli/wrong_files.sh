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

# --- a folder as text leaves nothing behind
expect 1 '.: is a folder, not a file' "$weft" train char-rms --train . --out none
[ ! -e none ] || failed 'a run was begun'
finish
