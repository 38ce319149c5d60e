/* SPDX-License-Identifier: MIT */
/* Drives a headless Chromium through chromedriver: WebDriver over HTTP, on a port that the system chooses. The browser keeps its files in a
 * temporary folder. A keeper process ends the browser and removes the folder when the test ends in any way. */
#ifndef TESTS_WEBDRIVER_H
#define TESTS_WEBDRIVER_H

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check_weft.h"

static struct {
    int port, alive; /* the keeper reads from the other end of `alive` */
    pid_t keeper;
    char session[128], folder[64], program[512];
} browser;

/* A check that may also stand outside of a test, where Check's own end the program without a word. */
#define must(condition, ...)                                                                                                               \
    do {                                                                                                                                   \
        if (!(condition)) {                                                                                                                \
            fprintf(stderr, __VA_ARGS__);                                                                                                  \
            fputc('\n', stderr);                                                                                                           \
            ck_abort_msg(__VA_ARGS__);                                                                                                     \
        }                                                                                                                                  \
    } while (0)

/* The first of these programs on the PATH. */
static inline bool find_on_path(const char *const *names, char *out, size_t size)
{
    for (; *names; names++) {
        const char *path = getenv("PATH");
        while (path && *path) {
            int length = (int)strcspn(path, ":");
            snprintf(out, size, "%.*s/%s", length, path, *names);
            if (access(out, X_OK) == 0)
                return true;
            path += length + (path[length] == ':');
        }
    }
    return false;
}

/* Kills every child of this process; those of the killed become its children, until there are none. */
static inline void kill_children(void)
{
    for (;;) {
        DIR *folder = opendir("/proc");
        for (struct dirent *entry; folder && (entry = readdir(folder));) {
            char path[300], line[512] = "";
            snprintf(path, sizeof path, "/proc/%s/stat", entry->d_name);
            FILE *f = atoi(entry->d_name) > 0 ? fopen(path, "r") : NULL;
            if (!f)
                continue;
            int parent = 0;
            char *end = fgets(line, sizeof line, f) ? strrchr(line, ')') : NULL;
            fclose(f);
            if (end && sscanf(end, ") %*c %d", &parent) == 1 && parent == getpid())
                kill(atoi(entry->d_name), SIGKILL);
        }
        if (folder)
            closedir(folder);
        pid_t ended = waitpid(-1, NULL, 0);
        if (ended < 0 && errno == ECHILD)
            return;
    }
}

/* Starts the driver, waits until the test's end of `alive` is closed, and clears up. Does not return. */
static inline void keep(const char *driver, int alive, int out)
{
    char word, command[100];
    setsid();
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    if (fork() == 0) {
        int null = open("/dev/null", O_RDWR);
        dup2(null, 0);
        dup2(out, 1);
        dup2(null, 2);
        setenv("HOME", browser.folder, 1);
        setenv("XDG_CONFIG_HOME", browser.folder, 1);
        setenv("XDG_CACHE_HOME", browser.folder, 1);
        setenv("TMPDIR", browser.folder, 1);
        execl(driver, driver, "--port=0", (char *)NULL);
        _exit(127);
    }
    close(out);
    while (read(alive, &word, 1) < 0 && errno == EINTR)
        ;
    kill_children();
    snprintf(command, sizeof command, "rm -rf '%s'", browser.folder);
    _exit(system(command) != 0);
}

/* The answer's "value", to be released; what the driver refuses fails the test. `body` is taken over. */
static inline json_t *wd(const char *method, const char *path, json_t *body)
{
    char *text = body ? json_dumps(body, 0) : strdup("{}"), head[512];
    json_decref(body);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)browser.port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    struct timeval limit = {.tv_sec = 60};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    must(connect(fd, (struct sockaddr *)&address, sizeof address) == 0, "chromedriver does not listen");
    bool get = strcmp(method, "POST") != 0;
    int length = snprintf(head, sizeof head,
                          "%s /session%s%s%s HTTP/1.1\r\nHost: localhost:%d\r\nConnection: close\r\nContent-Type: application/json\r\n"
                          "Content-Length: %zu\r\n\r\n",
                          method, browser.session[0] ? "/" : "", browser.session, path, browser.port, get ? 0 : strlen(text));
    must(write(fd, head, (size_t)length) == length, "chromedriver does not listen");
    for (size_t sent = 0, all = get ? 0 : strlen(text); sent < all;) {
        ssize_t n = write(fd, text + sent, all - sent);
        must(n > 0, "chromedriver does not listen");
        sent += (size_t)n;
    }
    size_t used = 0, room = 1 << 16, wanted = SIZE_MAX;
    char *answer = malloc(room), *content = NULL;
    while (used < wanted) {
        if (used + 1 >= room)
            answer = realloc(answer, room *= 2);
        ssize_t n = read(fd, answer + used, room - used - 1);
        must(n >= 0, "chromedriver does not answer %s", path);
        if (n == 0)
            break;
        used += (size_t)n;
        answer[used] = 0;
        char *end = strstr(answer, "\r\n\r\n"), *count = strcasestr(answer, "Content-Length:");
        if (wanted == SIZE_MAX && end && count && count < end)
            wanted = (size_t)(end + 4 - answer) + (size_t)strtoul(count + 15, NULL, 10);
    }
    close(fd);
    content = strstr(answer, "\r\n\r\n");
    json_error_t problem;
    json_t *all = json_loads(content ? content : "", 0, &problem);
    must(all != NULL, "chromedriver answers no JSON to %s: %s", path, problem.text);
    json_t *value = json_incref(json_object_get(all, "value"));
    const char *error = json_string_value(json_object_get(value, "error"));
    must(!error, "%s %s: %s: %s", path, text, error, json_string_value(json_object_get(value, "message")));
    json_decref(all);
    free(answer);
    free(text);
    return value;
}

static inline void wd_do(const char *path, json_t *body)
{
    json_decref(wd("POST", path, body));
}

/* A command of the browser's own protocol. */
static inline void cdp(const char *command, json_t *parameters)
{
    wd_do("/goog/cdp/execute", json_pack("{s:s, s:o}", "cmd", command, "params", parameters));
}

/* False, with the reason on the standard error, where there is no browser to test with. */
static inline bool browser_start(void)
{
    static const char *const drivers[] = {"chromedriver", NULL};
    static const char *const programs[] = {"chromium", "chromium-browser", "google-chrome", "google-chrome-stable", NULL};
    char driver[512];
    int alive[2], out[2];
    if (!find_on_path(drivers, driver, sizeof driver) || !find_on_path(programs, browser.program, sizeof browser.program)) {
        fprintf(stderr, "skipped: chromedriver or chromium is not installed (Debian: apt install chromium chromium-driver)\n");
        return false;
    }
    strcpy(browser.folder, "/tmp/weft-browser-XXXXXX");
    if (!mkdtemp(browser.folder) || pipe2(alive, O_CLOEXEC) || pipe2(out, O_CLOEXEC)) {
        perror("browser");
        exit(EXIT_FAILURE);
    }
    if ((browser.keeper = fork()) == 0) {
        close(alive[1]);
        close(out[0]);
        keep(driver, alive[0], out[1]);
    }
    close(alive[0]);
    close(out[1]);
    browser.alive = alive[1];
    char text[4096] = "";
    for (size_t used = 0; used + 1 < sizeof text && !browser.port;) {
        struct pollfd wait = {.fd = out[0], .events = POLLIN};
        ssize_t n = poll(&wait, 1, 30000) > 0 ? read(out[0], text + used, sizeof text - used - 1) : 0;
        if (n <= 0)
            break;
        text[used += (size_t)n] = 0;
        char *port = strstr(text, "successfully on port ");
        if (port && strchr(port, '\n'))
            browser.port = atoi(port + 21);
    }
    if (!browser.port) {
        fprintf(stderr, "chromedriver did not start: %s\n", text);
        exit(EXIT_FAILURE);
    }
    json_t *args = json_pack("[s, s, s, s, s, s, s]", "--headless", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
                             "--disable-background-networking", "--window-size=1280,900", "--force-device-scale-factor=1");
    if (geteuid() == 0)
        json_array_append_new(args, json_string("--no-sandbox"));
    json_array_append_new(args, json_sprintf("--user-data-dir=%s/profile", browser.folder));
    json_t *session = wd("POST", "",
                         json_pack("{s:{s:{s:{s:s, s:o}, s:{s:s, s:s}}}}", "capabilities", "alwaysMatch", "goog:chromeOptions", "binary",
                                   browser.program, "args", args, "goog:loggingPrefs", "browser", "ALL", "performance", "ALL"));
    snprintf(browser.session, sizeof browser.session, "%s", json_string_value(json_object_get(session, "sessionId")));
    json_decref(session);
    return true;
}

static inline void browser_stop(void)
{
    json_decref(wd("DELETE", "", NULL));
    close(browser.alive);
    waitpid(browser.keeper, NULL, 0);
}

/* Runs a function's body in the page and returns its value. */
static inline json_t *js(const char *script)
{
    return wd("POST", "/execute/sync", json_pack("{s:s, s:[]}", "script", script, "args"));
}

static inline double js_number(const char *script)
{
    json_t *value = js(script);
    ck_assert_msg(json_is_number(value), "no number: %s", script);
    double number = json_number_value(value);
    json_decref(value);
    return number;
}

static inline bool js_true(const char *script)
{
    json_t *value = js(script);
    bool yes = json_is_true(value);
    json_decref(value);
    return yes;
}

/* Valid until the next call. */
static inline const char *js_text(const char *script)
{
    static char text[8192];
    json_t *value = js(script);
    snprintf(text, sizeof text, "%s", json_is_string(value) ? json_string_value(value) : "(no text)");
    json_decref(value);
    return text;
}

#define js_is(script, text) ck_assert_str_eq(js_text(script), text)

/* The number of elements that a selector finds; it has no single quotes. */
static inline int elements(const char *selector)
{
    char *script = wf_format("return document.querySelectorAll('%s').length", selector);
    int count = (int)js_number(script);
    wf_free(script);
    return count;
}

/* Moves the pointer, and clicks where `click`. */
static inline void point(double x, double y, bool click)
{
    json_t *actions =
        json_pack("[{s:s, s:i, s:i, s:i, s:s}]", "type", "pointerMove", "duration", 0, "x", (int)x, "y", (int)y, "origin", "viewport");
    if (click) {
        json_array_append_new(actions, json_pack("{s:s, s:i}", "type", "pointerDown", "button", 0));
        json_array_append_new(actions, json_pack("{s:s, s:i}", "type", "pointerUp", "button", 0));
    }
    wd_do("/actions", json_pack("{s:[{s:s, s:s, s:{s:s}, s:o}]}", "actions", "type", "pointer", "id", "mouse", "parameters", "pointerType",
                                "mouse", "actions", actions));
}

/* At the middle of what an expression gives, scrolled into sight. */
static inline void point_at(const char *expression, bool click)
{
    char *script = wf_format("const e = %s; e.scrollIntoView({block: 'nearest', inline: 'nearest'}); const b = e.getBoundingClientRect();"
                             "return [b.x + b.width / 2, b.y + b.height / 2];",
                             expression);
    json_t *at = js(script);
    point(json_number_value(json_array_get(at, 0)), json_number_value(json_array_get(at, 1)), click);
    json_decref(at);
    wf_free(script);
}

/* Keys of WebDriver, beside characters. */
#define KEY_TAB "\uE004"
#define KEY_ESCAPE "\uE00C"
#define KEY_PAGE_DOWN "\uE00F"
#define KEY_END "\uE010"
#define KEY_HOME "\uE011"
#define KEY_LEFT "\uE012"
#define KEY_UP "\uE013"
#define KEY_RIGHT "\uE014"
#define KEY_DOWN "\uE015"
/* Presses and releases one key after the other. */
#define press(...) press_keys((const char *const[]){__VA_ARGS__, NULL})
static inline void press_keys(const char *const *keys)
{
    for (; *keys; keys++)
        wd_do("/actions", json_pack("{s:[{s:s, s:s, s:[{s:s, s:s}, {s:s, s:s}]}]}", "actions", "type", "key", "id", "keys", "actions",
                                    "type", "keyDown", "value", *keys, "type", "keyUp", "value", *keys));
}

/* The window's inner size, in pixels of the page. */
static inline void resize(int width, int height)
{
    cdp("Emulation.setDeviceMetricsOverride",
        json_pack("{s:i, s:i, s:i, s:b}", "width", width, "height", height, "deviceScaleFactor", 1, "mobile", 0));
}

/* "light" or "dark", as the system would say it; "print" as medium where it is to be. */
static inline void emulate(const char *medium, const char *scheme)
{
    cdp("Emulation.setEmulatedMedia",
        json_pack("{s:s, s:[{s:s, s:s}]}", "media", medium, "features", "name", "prefers-color-scheme", "value", scheme));
}

#endif
