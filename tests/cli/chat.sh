# SPDX-License-Identifier: MIT
# weft chat from a pipe, with the tiny model of tests/golden/chat: messages, commands, templates, a context that is full, and what is refused.
. "$2/tests/cli/lib.sh"

model=$source/tests/golden/chat/model
chat()
{
    "$weft" chat "$model" --max-tokens 8 "$@" 2>err || failed "chat $*: $(tail -1 err)"
}

# --- a line is a message, and only the answers are on standard output
printf 'Hello\n\nWhat next?\n' | chat --greedy >out
grep -q "chat template chatml; system message \"You're the model's .*\" (the template's own; --system replaces it)" err || failed "said: $(cat err)"
grep -c 'the answer was cut after 8 tokens (--max-tokens)' err | grep -qx 2 || failed "not two answers of 8 tokens: $(cat err)"
! grep -q '> ' out || failed 'there is a prompt in a pipe'
printf 'Hello\r\n   \r\nWhat next?' | chat --greedy >crlf
cmp out crlf || failed 'CR LF gives other answers'
printf 'Hello\n' | chat --greedy --no-cache >first
[ "$(head -c "$(wc -c <first)" out)" = "$(cat first)" ] || failed 'the first answer depends on what follows, or on the cache'
printf 'Hello\n' | chat --greedy --system 'Sail!' >sailor
grep -q 'system message "Sail!"$' err || failed "said: $(cat err)"
! cmp -s first sailor || failed 'the system message changes nothing'
printf 'Hello\n' | chat --temperature 2 --seed 2 >two
printf 'Hello\n' | chat --temperature 2 --seed 2 >again
cmp two again || failed 'a seed gives two answers'
printf 'Hello\n' | chat --temperature 2 --seed 3 >again
cmp -s two again && failed 'two seeds give one answer'

# --- commands: /reset and /system begin anew
printf 'Hello\n/reset\nHello\n/system Sail!\nHello\n/help\n/quit\nHello\n' | chat --greedy >out
cat first first sailor | cmp - out || failed "commands: $(cat err)"
grep -q '/system TEXT sets the system message' err || failed "no help: $(cat err)"
: | chat >out
[ ! -s out ] || failed 'nothing gives an answer'

printf '/foo bar\n/quit\n' | chat --greedy >out
grep -q '/foo is not a command; it is sent as a message (commands: /reset' err && [ -s out ] || failed "an unknown command: $(cat err)"

# --- generate --chat: each prompt is a conversation of its own, with the answer that chat gives first
generate() { "$weft" generate "$model" --chat --max-tokens 8 --greedy "$@" 2>err || failed "generate --chat $*: $(tail -1 err)"; }
generate --prompt Hello | cmp - first || failed "generate --chat: $(cat err)"
generate --prompt Hello --system 'Sail!' | cmp - sailor || failed "generate --chat --system: $(cat err)"
printf 'Hello\nWhat next?\nHello\n' >questions
{ for i in 1 2 3; do echo "=== prompt $i ==="; if [ $i = 2 ]; then generate --prompt 'What next?'; else cat first; fi; done; } >expected
generate --input questions | cmp - expected || failed "generate --chat --input: $(cat err)"
generate --input questions --json | sed -n 3p | grep -q '^{"line": 3, "prompt": "Hello", "text": "\(.*\)", "continuation": "\1", ' || failed 'generate --chat --json'
expect 2 '--system applies to --chat' "$weft" generate "$model" --system x
expect 2 'nonesuch' "$weft" generate "$model" --chat --template nonesuch --prompt x

# --- a context of 128 tokens: turns are dropped, and it is said
for i in 1 2 3 4 5 6 7 8; do echo "message $i of several"; done | chat >out
grep -q 'the conversation outgrew the context of 128 tokens: dropped the 1 oldest turn before this answer' err || failed "said: $(cat err)"
awk 'BEGIN { for (i = 0; i < 200; i++) printf "%d ", i % 7 }' >long
printf 'Hello\n' | cat - long >input
expect 1 'standard input:2: the message does not fit into the context: with the system message it has ' sh -c '"$0" chat "$1" --max-tokens 8 <input >/dev/null 2>err.all; status=$?; grep -v "answer was cut\|chat template" err.all >&2; exit $status' "$weft" "$model"
expect 1 'standard input:1:2: not UTF-8' sh -c 'printf "a\377\n" | "$0" chat "$1" 2>err.all; status=$?; grep -v "chat template" err.all >&2; exit $status' "$weft" "$model"

# --- templates
cp -r "$model" FOLDER
chmod -R u+w FOLDER
printf 'Hello\n' >input
said_template()
{
    "$weft" chat FOLDER --max-tokens 4 --greedy <input >out 2>err || failed "$1: $(tail -1 err)"
    grep -q "chat template $1\$" err || failed "not the template $1: $(cat err)"
}
printf "{%% for message in messages %%}{{ '<|im_start|>' + message['role'] + '\\\\n' + message['content'] + '<|im_end|>\\\\n' }}{%% endfor %%}{%% if add_generation_prompt %%}{{ '<|im_start|>assistant\\\\n' }}{%% endif %%}\n" >FOLDER/chat_template.jinja
said_template chatml # chat_template.jinja wins
printf '{{ "<|START_OF_TURN_TOKEN|>" }}' >FOLDER/chat_template.jinja
expect 1 'FOLDER/chat_template.jinja: the chat template is that of Command R, which is not supported: choose one with --template: chatml llama2' "$weft" chat FOLDER
for name in chatml llama3 llama3.1 gemma gemma3 phi3 phi3-small phi4 phi4-mini; do
    "$weft" chat FOLDER --max-tokens 4 --template $name <input >out 2>err || failed "$name: $(tail -1 err)"
    grep -q "chat template $name" err || failed "not the template $name: $(cat err)"
done
expect 2 'the vocabulary has no token "[INST]", which the chat template mistral-v3 needs' "$weft" chat FOLDER --template mistral-v3
expect 2 'there is no chat template "alpaca"; the known ones are: chatml llama2' "$weft" chat FOLDER --template alpaca
rm FOLDER/chat_template.jinja
echo '{"chat_template": [{"name": "tools", "template": "x"}]}' >FOLDER/tokenizer_config.json
expect 1 'FOLDER/tokenizer_config.json: key "chat_template": neither a text nor a list with one named "default"' "$weft" chat FOLDER
echo '{"chat_template": ' >FOLDER/tokenizer_config.json
expect 1 'FOLDER/tokenizer_config.json:2:' "$weft" chat FOLDER
echo '{}' >FOLDER/tokenizer_config.json
expect 1 'FOLDER has no chat template (chat_template.jinja, or "chat_template" in tokenizer_config.json): if the model was trained on conversations, name their template with --template' "$weft" chat FOLDER
expect 2 'FOLDER is missing' "$weft" chat
expect 2 '--max-tokens' "$weft" chat FOLDER --max-tokens 0

# --- output that can't be written
expect 1 "standard output can't be written" sh -c '"$0" chat "$1" <input 2>err.all >/dev/full; status=$?; grep -v "chat template" err.all >&2; exit $status' "$weft" "$model"

# --- a training's own run has no template
"$weft" train char-rms --train "$story" --out run --steps 2 --set d_model=16 --set d_ff=16 --set heads=2 --set layers=1 --set context=32 --set batch=2 2>log || failed "train: $(tail -1 log)"
expect 1 'run has no chat template' "$weft" chat run
expect 2 'the vocabulary has no token "<|im_end|>", which the chat template chatml needs' "$weft" chat run --template chatml

finish
