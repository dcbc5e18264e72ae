// SPDX-License-Identifier: Apache-2.0
/*
 * The process that holds a pod's namespaces: sleeps until it is asked to end, and takes leave of orphans.
 */
#include <signal.h>
#include <stddef.h>
#include <sys/wait.h>
#include <unistd.h>

static void on_end(int signal)
{
	(void)signal;
	_exit(0);
}

static void on_child(int signal)
{
	(void)signal;
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
}

int main(void)
{
	struct sigaction end = { .sa_handler = on_end };
	struct sigaction child = { .sa_handler = on_child, .sa_flags = SA_NOCLDSTOP };

	sigaction(SIGINT, &end, NULL);
	sigaction(SIGTERM, &end, NULL);
	sigaction(SIGCHLD, &child, NULL);
	for (;;)
		pause();
}
