/* Stands for pyxis in the test Slurm: srun takes its options, and refuses an empty argument and a
   mount that is none. It starts no container: a task finds what was asked for in PYXIS_…, and
   begins in the working folder. */
#include <slurm/spank.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

SPANK_PLUGIN(pyxis_options, 1);

enum { IMAGE, MOUNTS, WORKDIR, ENV, COUNT };
static char *given[COUNT];
static const char *variables[COUNT] = {
    "PYXIS_IMAGE", "PYXIS_MOUNTS", "PYXIS_WORKDIR", "PYXIS_ENV"};

static int take(int which, const char *argument, int remote)
{
	(void)remote;
	if (which >= COUNT)
		return 0;
	if (argument == NULL || *argument == '\0') {
		slurm_error("pyxis: argument required");
		return -1;
	}
	given[which] = strdup(argument);
	if (which == MOUNTS) { /* SRC:DST[:FLAGS], with commas between them */
		char *all = strdup(argument), *one, *rest = all;
		while ((one = strsep(&rest, ",")) != NULL)
			if (strchr(one, ':') == NULL) {
				slurm_error("pyxis: --container-mounts: invalid format: %s", one);
				return -1;
			}
		free(all);
	}
	return 0;
}

static struct spank_option options[] = {
    {"container-image", "[USER@][REGISTRY#]IMAGE[:TAG]|PATH", "[pyxis] the image", 1, IMAGE, take},
    {"container-mounts", "SRC:DST[:FLAGS][,SRC:DST...]", "[pyxis] mounts", 1, MOUNTS, take},
    {"container-workdir", "PATH", "[pyxis] working folder", 1, WORKDIR, take},
    {"container-env", "NAME[,NAME...]", "[pyxis] variables that go before the image's", 1, ENV, take},
    {"container-name", "NAME", "[pyxis] name", 1, COUNT, take},
    {"container-mount-home", NULL, "[pyxis] mount the home folder", 0, COUNT, take},
    {"no-container-mount-home", NULL, "[pyxis] do not", 0, COUNT, take},
    {"container-remap-root", NULL, "[pyxis] be root inside", 0, COUNT, take},
    {"container-writable", NULL, "[pyxis] writable", 0, COUNT, take},
    SPANK_OPTIONS_TABLE_END};

int slurm_spank_init(spank_t job, int count, char **arguments)
{
	(void)count, (void)arguments;
	for (int i = 0; options[i].name; i++)
		if (spank_option_register(job, &options[i]) != ESPANK_SUCCESS)
			return -1;
	return 0;
}

int slurm_spank_task_init(spank_t job, int count, char **arguments)
{
	(void)count, (void)arguments;
	for (int i = 0; i < COUNT; i++)
		if (given[i])
			spank_setenv(job, variables[i], given[i], 1);
	return given[WORKDIR] ? chdir(given[WORKDIR]) : 0;
}
