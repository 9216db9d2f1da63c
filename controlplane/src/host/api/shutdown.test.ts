/** How a system is switched off, as set for a host and for one request. */
import { PowerAction, ShutdownMode } from '@rackwright/messages';
import { afterEach, beforeEach, expect, test } from 'vitest';
import {
  addSurroundings,
  type Fixture,
  failureOf,
  specOf,
  startFixture,
  violatedFields,
} from '../../services/rpc.fixture.ts';

const { GRACEFUL, FORCE } = ShutdownMode;
const name = 'hosts/h1';

let fixture: Fixture;
let hosts: Fixture['hosts'];

beforeEach(async () => {
  fixture = await startFixture();
  ({ hosts } = fixture);
  await addSurroundings(fixture);
});

afterEach(() => fixture.stop());

const create = (shutdown: object) =>
  hosts.createHost({ hostId: 'h1', host: { spec: { ...specOf(1), shutdown } } });

test('an update replaces the whole policy, or one field of it', async () => {
  await create({ mode: GRACEFUL, timeoutSeconds: 60 });
  const update = async (shutdown: object, ...paths: string[]) => {
    const host = { name, spec: { shutdown } };
    return (await hosts.updateHost({ host, updateMask: { paths } })).spec?.shutdown;
  };
  expect(await update({ timeoutSeconds: 90 }, 'spec.shutdown.timeout_seconds')).toMatchObject({
    ...{ mode: GRACEFUL, timeoutSeconds: 90 },
  });
  expect(await update({ mode: FORCE }, 'spec.shutdown.mode')).toMatchObject({
    ...{ mode: FORCE, timeoutSeconds: 90 },
  });
  const whole = await update({ mode: GRACEFUL }, 'spec.shutdown');
  expect([whole?.mode, whole?.timeoutSeconds]).toEqual([GRACEFUL, undefined]);
});

test.each([9, 3_601])('%i seconds are refused, with what would be right', async (seconds) => {
  const wrong = () => create({ mode: 7 as ShutdownMode, timeoutSeconds: seconds });
  expect(await violatedFields(wrong())).toEqual([
    'host.spec.shutdown.mode',
    'host.spec.shutdown.timeout_seconds',
  ]);
  expect(JSON.stringify(await failureOf(wrong()))).toContain(
    `is ${seconds}; it must be from 10 to 3600, or unset for 300`,
  );
});

test('a request names what is wrong with its policy', async () => {
  await create({});
  const ask = (action: PowerAction, shutdown: object) =>
    violatedFields(hosts.setHostPower({ name, action, shutdown }));
  expect(await ask(PowerAction.OFF, { timeoutSeconds: 1 })).toEqual(['shutdown.timeout_seconds']);
  expect(await ask(PowerAction.RESET, { mode: 9 as ShutdownMode })).toEqual(['shutdown.mode']);
  expect(await ask(PowerAction.ON, { mode: FORCE })).toEqual(['shutdown']);
  expect(await ask(PowerAction.SKIP_WAIT, {})).toEqual(['shutdown']);
});
