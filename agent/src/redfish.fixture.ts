/** A Redfish BMC made of software, and what carries operations out on it. */
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { agent } from '@rackwright/messages';
import { nodeClock, nodeExec, nodeHttpClient } from '@rackwright/platform/node';
import { quietLog } from '@rackwright/platform/testing';
import type { FinalResult } from '@rackwright/results';
import {
  type PowerOnBoot,
  type RedfishBmc,
  type RedfishBmcOptions,
  startRedfishBmc,
} from '@rackwright/sim/redfish';
import { afterEach } from 'vitest';
import { createBmcDriver } from './bmc-drivers.ts';
import { parseConfig } from './config.ts';
import { createBmcDrivers } from './governed-bmcs.ts';
import { createExecutor } from './operations/executor.ts';
import { defaultDispatcherLimits, noHandOffs, RunnerDispatcher } from './runner-gateway/index.ts';
import { testSigner } from './runner-gateway/testing.ts';
import { AttemptEnd, type OperationContext } from './session/index.ts';

const clock = nodeClock();
const bmcs: RedfishBmc[] = [];

afterEach(async () => {
  await Promise.all(bmcs.splice(0).map((bmc) => bmc.close()));
});

export interface BmcObservers {
  readonly on?: (boot: PowerOnBoot) => void;
  readonly off?: () => void;
  readonly medium?: (now: string | undefined) => void;
}

/** A BMC of a host that is off, closed after the test. */
export async function startBmc(
  options: Partial<RedfishBmcOptions>,
  observers: BmcObservers = {},
): Promise<RedfishBmc> {
  let isOn = false;
  const bmc = await startRedfishBmc({
    user: 'u',
    password: 'secret',
    identity: {
      uuid: '8f14e45f-ceea-467a-9c2b-3d0e55aa0f01',
      serial: 'HOST-1',
      manufacturer: 'Rackwright',
      model: 'Machine',
    },
    machine: {
      powerOn: (boot) => {
        isOn = true;
        observers.on?.(boot);
      },
      powerOff: () => {
        isOn = false;
        observers.off?.();
      },
      isOn: () => isOn,
      medium: (now) => observers.medium?.(now),
    },
    ...options,
  });
  bmcs.push(bmc);
  return bmc;
}

export function access({ address, port }: RedfishBmc, certificateSha256: string) {
  const credential = { credential: 'credentials/rack', credentialVersion: 3n };
  return { address, port, protocol: 'redfish', certificateSha256, ...credential };
}

type Kind = NonNullable<MessageInitShape<typeof agent.OperationSchema>['kind']>;

/** Carries operations out, one after another, and tells of the grants that they open and close. */
export function startExecutor(
  bmcConfig: object,
  {
    bootMediumUrl,
    onGrant = () => {},
    isLeaseValid: leaseValid = () => true,
    brake = () => undefined,
  }: {
    readonly bootMediumUrl?: () => string | undefined;
    readonly onGrant?: (event: 'grant' | 'no grant') => void;
  } & Partial<Pick<OperationContext, 'isLeaseValid' | 'brake'>> = {},
): (kind: Kind) => Promise<FinalResult> {
  const quick = { spacingMs: 0, readBackPollMs: 50, redfishRequestTimeoutMs: 10_000 };
  const config = parseConfig(
    JSON.stringify({ serverAddress: '127.0.0.1', bmc: { ...quick, ...bmcConfig } }),
  );
  const parts = { clock, exec: nodeExec(), httpClient: nodeHttpClient(), log: quietLog };
  const executor = createExecutor({
    clock,
    log: quietLog,
    drivers: createBmcDrivers(config.bmc, parts, createBmcDriver),
    ...(bootMediumUrl === undefined ? {} : { bootMediumUrl }),
    orders: new RunnerDispatcher({
      clock,
      log: quietLog,
      signer: testSigner(),
      operationState: () => 'unknown',
      handOffs: noHandOffs,
      limits: defaultDispatcherLimits,
    }),
  });
  const context: OperationContext = {
    signal: new AbortController().signal,
    begin: async () => {},
    reportProgress: () => {},
    credential: async (name, version) => ({ name, version, username: 'u', password: 'secret' }),
    isLeaseValid: leaseValid,
    leaseLeftMs: () => 9_000,
    brake,
    remainingMs: () => Number.POSITIVE_INFINITY,
    openGrant: async ({ macs, expiresAtMs }) => {
      onGrant('grant');
      const grant = { operationId: 'op', hostUid: 'uid', hostName: 'h', bootToken: 'token' };
      return { ...grant, macs, openedAtMs: clock.nowMs(), expiresAtMs };
    },
    closeGrants: async () => onGrant('no grant'),
  };
  return async (kind) => {
    const operation = create(agent.OperationSchema, { id: 'op', hostUid: 'uid', kind });
    try {
      return await executor.execute(operation, context);
    } catch (error) {
      if (error instanceof AttemptEnd) return error.result;
      throw error;
    }
  };
}
