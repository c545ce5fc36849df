/*
 * Lets an older User-Mode Linux run on processors with a larger register state than it knows (AMX).
 *
 * Linux takes a set of extended registers from PTRACE_SETREGSET only whole (xstateregs_set in arch/x86/kernel/fpu/regset.c). Kernels
 * before 6.14 that run as a process have a fixed buffer for it, which is too small there, and panic at boot with "ptrace set fp
 * regs failed, errno = 14". This library is preloaded into them: it reads the whole set, puts theirs over its front, and writes it.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/types.h>
#include <sys/uio.h>

/* More than any processor's: with AMX it is 11 KiB. */
#define STATE_MAX 65536

typedef long (*ptrace_call)(enum __ptrace_request, pid_t, void *, void *);

long ptrace(enum __ptrace_request request, ...)
{
    static ptrace_call next;
    static unsigned char state[STATE_MAX];
    va_list arguments;
    va_start(arguments, request);
    pid_t pid = va_arg(arguments, pid_t);
    void *address = va_arg(arguments, void *);
    void *data = va_arg(arguments, void *);
    va_end(arguments);

    if (!next)
        next = (ptrace_call) dlsym(RTLD_NEXT, "ptrace");
    if (request == PTRACE_SETREGSET && address == (void *) NT_X86_XSTATE) {
        struct iovec *given = data, whole = { state, sizeof state };
        if (next(PTRACE_GETREGSET, pid, address, &whole) == 0 && given->iov_len < whole.iov_len) {
            memcpy(state, given->iov_base, given->iov_len);
            return next(request, pid, address, &whole);
        }
    }
    return next(request, pid, address, data);
}
