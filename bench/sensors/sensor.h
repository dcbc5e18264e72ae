/* SPDX-License-Identifier: Apache-2.0 */
/* The sensor that is measured: the program pass, on one of libdaq's modules. One at a time. */
#ifndef RB_SENSOR_H
#define RB_SENSOR_H

#include <stdbool.h>
#include <stdint.h>

/**
 * struct sensor - what runs
 * @module: libdaq's module, "ringcap" or "afpacket"
 * @in_line: between the interfaces vb and wa; else it reads vb
 * @instances: number of threads, each with its instance of the module
 */
struct sensor {
	const char *module;
	bool in_line;
	unsigned int instances;
};

struct sensor_counts {
	uint64_t received;	/* packets that the sensor got */
	uint64_t dropped;	/* packets that the module says it has lost */
};

/* Returns when all instances wait for packets. */
void sensor_start(const struct sensor *sensor);

/* Ends the sensor, and returns the sums over its instances since the start. */
struct sensor_counts sensor_end(void);

#endif /* RB_SENSOR_H */
