/** rackwright fleet … */
import { create } from '@bufbuild/protobuf';
import { type Fleet, FleetSchema, FleetSpecSchema } from '@rackwright/messages';
import { buildCommand, buildRouteMap } from '@stricli/core';
import { briefs } from '../../briefs.ts';
import type { CliContext, CommandIo } from '../../command-io.ts';
import { connectionFlags, outputFlag, type SharedFlags } from '../../flags.ts';
import { isForPrograms, printAs, printFields } from '../../output/show.ts';
import { type BrakeFlags, brakeFlags, freezeFields } from '../frame/limits.ts';
import { cleanStepRoutes } from './clean-step.ts';
import { type FleetClient, withFleet } from './client.ts';
import { registryRoutes } from './registry.ts';
import { type FleetFlags, fleetChange, fleetFlags, fleetRows } from './spec.ts';
import { fleetStatus } from './status.ts';

const shared = { ...connectionFlags, ...outputFlag };
const aliases = { o: 'output' } as const;

async function show(
  io: CommandIo,
  flags: SharedFlags,
  call: (fleet: FleetClient) => Promise<Fleet>,
): Promise<void> {
  const fleet = await withFleet(io, flags, call);
  if (isForPrograms(flags.output)) {
    printAs(io, flags.output, FleetSchema, fleet);
    return;
  }
  printFields(io, [
    ['name', fleet.name],
    ...fleetRows(fleet.spec ?? create(FleetSpecSchema)),
    ...freezeFields(io, fleet.status?.freeze),
  ]);
}

const getFleet = buildCommand({
  docs: { brief: 'Show what holds for every rack' },
  parameters: { flags: shared, aliases },
  func(this: CliContext, flags: SharedFlags) {
    return show(this.io, flags, (fleet) => fleet.getFleet({}));
  },
});

const updateFleet = buildCommand({
  docs: {
    brief: 'Change what holds for every rack; values that are not given stay',
    fullDescription:
      'A host’s own priorities override those of its label "pool", and these override ' +
      'the fleet’s. A priority that is not named stays; STEP- or POOL:STEP- undoes one, and none ' +
      'alone all. ' +
      'Commands and webhooks of templates reach only what these flags allow: each flag adds ' +
      'one entry, its --no- form removes one, and "none" alone removes all.',
  },
  parameters: {
    flags: { ...shared, ...fleetFlags },
    aliases,
  },
  async func(this: CliContext, flags: SharedFlags & FleetFlags) {
    const { paths, dependsOnNow, over } = fleetChange(flags);
    const updateMask = { paths };
    await show(this.io, flags, async (client) => {
      // Sent with the etag: a concurrent change by another person is not overwritten.
      const { etag, spec } = dependsOnNow ? await client.getFleet({}) : { etag: '' };
      const next = over(spec ?? create(FleetSpecSchema));
      return client.updateFleet({ fleet: { etag, spec: next }, updateMask });
    });
  },
});

const freezeFleet = buildCommand({
  docs: { brief: 'Let nothing destructive begin anywhere; what is running finishes' },
  parameters: { flags: { ...shared, ...brakeFlags }, aliases },
  func(this: CliContext, flags: SharedFlags & BrakeFlags) {
    const { reason, requestId } = flags;
    return show(this.io, flags, (fleet) => fleet.freezeFleet({ reason, requestId }));
  },
});

const thawFleet = buildCommand({
  docs: { brief: 'End the freeze of the fleet' },
  parameters: { flags: { ...shared, ...brakeFlags }, aliases },
  func(this: CliContext, flags: SharedFlags & BrakeFlags) {
    const { reason, requestId } = flags;
    return show(this.io, flags, (fleet) => fleet.thawFleet({ reason, requestId }));
  },
});

/** All commands on the fleet. */
export const fleetRoutes = buildRouteMap({
  routes: {
    get: getFleet,
    status: fleetStatus,
    update: updateFleet,
    registry: registryRoutes,
    'clean-step': cleanStepRoutes,
    freeze: freezeFleet,
    thaw: thawFleet,
  },
  docs: { brief: briefs.fleet },
});
