/** WebhookDriver against a simulated device: real sockets, and TLS unless a test wants none. */
import { guardedWebClient, nodeClock, nodeHttpClient } from '@rackwright/platform/node';
import { type SocketSwitchOptions, startSocketSwitch } from '@rackwright/sim/loopback';
import { Governor } from '../governor.ts';
import { defaultGovernorLimits } from '../governor-state.ts';
import type { PowerCalls } from './calls.ts';
import { defaultWebhookLimits, WebhookDriver, type WebhookTarget } from './driver.ts';

export const user = 'operator';
export const password = 'word-that-hides';
export const clock = nodeClock();

export const relayCalls: PowerCalls = {
  ...{ onPath: '/relay/on', offPath: '/relay/off', statePath: '/relay', method: '' },
  ...{ onBody: '', offBody: '', stateField: 'relay.on', onValues: [], offValues: [] },
  ...{ secretHeader: '', plainHttp: false },
};

export function startSwitch(changes: Partial<SocketSwitchOptions> = {}) {
  return startSocketSwitch({ user, password, ...changes });
}

export function driverFor(
  { address, port }: { readonly address: string; readonly port: number },
  changes: Partial<WebhookTarget> = {},
): WebhookDriver {
  const limits = { ...defaultGovernorLimits, spacingMs: 0, authenticationFailuresMax: 100 };
  return new WebhookDriver({
    target: {
      ...{ address, port, certificateSha256: undefined, user, password, calls: relayCalls },
      credential: 'credentials/test@1',
      ...changes,
    },
    governor: new Governor(clock, limits, () => {}),
    client: nodeHttpClient(),
    web: guardedWebClient(),
    clock,
    limits: { ...defaultWebhookLimits, requestTimeoutMs: 2_000 },
    readBack: { windowMs: 1_500, pollMs: 50 },
  });
}
