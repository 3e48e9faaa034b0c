/* SPDX-License-Identifier: Apache-2.0
 * A watch is one descriptor to poll in place of many. It is an epoll set that also contains a
 * timer. So a caller may sleep without a timeout of its own, and still wakes for retries and
 * deadlines. */
#include "base/clock.h"
#include "bootstrap/exchange.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

int tutti_watch_init(struct tutti_watch *watch)
{
    struct tutti_watch made = {.epoll_fd = -1, .timer_fd = -1};
    int rc;

    made.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (made.epoll_fd < 0)
        return tutti_fail(TUTTI_ERR_SYSTEM, "epoll_create1: %s", strerror(errno));
    made.timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    if (made.timer_fd < 0) {
        rc = tutti_fail(TUTTI_ERR_SYSTEM, "timerfd_create: %s", strerror(errno));
        goto close_fds;
    }
    TUTTI_TRY_OR(close_fds, rc, tutti_watch_add(&made, made.timer_fd, EPOLLIN, NULL));
    *watch = made;
    return TUTTI_OK;

close_fds:
    tutti_watch_fini(&made);
    return rc;
}

void tutti_watch_fini(struct tutti_watch *watch)
{
    if (watch->timer_fd >= 0)
        close(watch->timer_fd);
    if (watch->epoll_fd >= 0)
        close(watch->epoll_fd);
    watch->timer_fd = watch->epoll_fd = -1;
}

int tutti_watch_add(struct tutti_watch *watch, int fd, uint32_t events, void *owner)
{
    struct epoll_event event = {.events = events, .data.ptr = owner};

    if (epoll_ctl(watch->epoll_fd, EPOLL_CTL_ADD, fd, &event) != 0)
        return tutti_fail(TUTTI_ERR_SYSTEM, "watch a descriptor: %s", strerror(errno));
    return TUTTI_OK;
}

void tutti_watch_change(struct tutti_watch *watch, int fd, uint32_t events, void *owner)
{
    struct epoll_event event = {.events = events, .data.ptr = owner};

    tutti_assert(epoll_ctl(watch->epoll_fd, EPOLL_CTL_MOD, fd, &event) == 0);
}

void tutti_watch_remove(struct tutti_watch *watch, int fd)
{
    epoll_ctl(watch->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
}

void tutti_watch_close(struct tutti_watch *watch, int *fd)
{
    if (*fd < 0)
        return;
    /* While a forked child holds a copy of the descriptor, close alone would not remove it from the
     * epoll set. */
    tutti_watch_remove(watch, *fd);
    close(*fd);
    *fd = -1;
}

void tutti_watch_alarm(struct tutti_watch *watch, uint64_t at_ns)
{
    struct itimerspec alarm = {.it_value = {0, 0}};

    if (at_ns != TUTTI_NEVER) {
        if (at_ns == 0)
            at_ns = 1; /* zero would stop the timer */
        alarm.it_value.tv_sec = (time_t)(at_ns / TUTTI_NS_PER_S);
        alarm.it_value.tv_nsec = (long)(at_ns % TUTTI_NS_PER_S);
    }
    timerfd_settime(watch->timer_fd, TFD_TIMER_ABSTIME, &alarm, NULL);
}

void *tutti_watch_next(struct tutti_watch *watch)
{
    struct epoll_event event;
    uint64_t expirations;

    while (epoll_wait(watch->epoll_fd, &event, 1, 0) == 1) {
        if (event.data.ptr != NULL)
            return event.data.ptr;
        /* The timer has no owner, because it only has to wake the caller. */
        if (read(watch->timer_fd, &expirations, sizeof expirations) < 0)
            return NULL;
    }
    return NULL;
}
