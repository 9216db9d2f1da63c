/** Lists of steps through the operators' API: errors name their fields. */
import { ApiFailure, HostState } from '@rackwright/messages';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { preparedHost, putHost } from '../../services/prepared.fixture.ts';
import { addSurroundings, type Fixture, startFixture } from '../../services/rpc.fixture.ts';

let fixture: Fixture;

beforeEach(async () => {
  fixture = await startFixture();
  await addSurroundings(fixture);
  const situation = { state: HostState.MANAGEABLE, kind: undefined };
  await putHost(fixture.store, preparedHost(1, situation));
});

afterEach(() => fixture.stop());

test('a list that cannot run is refused with every wrong field, and changes nothing', async () => {
  const { hosts } = fixture;
  const [host] = (await hosts.listHosts({})).hosts;
  if (host === undefined) throw new Error('no host');
  const steps = [
    { step: 'hold' },
    { step: 'wait', arguments: { seconds: 'abc' } },
    { step: 'deploy.polish' },
    { step: 'deploy.erase_devices', arguments: { password: 'hunter2' } },
  ];
  const failure: unknown = await hosts
    .cleanHost({ name: host.name, steps })
    .catch((error: unknown) => error);
  if (!(failure instanceof ApiFailure)) throw new Error('it was accepted');
  const { error } = failure;
  const violations = error.kind === 'invalidArgument' ? error.violations : [];
  expect(violations.map(({ field }) => field)).toEqual([
    'steps[1].arguments.seconds',
    'steps[2].step',
    'steps[3].arguments',
  ]);
  expect(violations[0]?.description).toBe('must be a whole number 1–86400; "abc" is not');
  expect(JSON.stringify(error)).not.toContain('hunter2');
  expect((await hosts.getHost({ name: host.name })).etag).toBe(host.etag);
});

test('resume and skip without anything that waits say what to do instead', async () => {
  const { hosts } = fixture;
  const [host] = (await hosts.listHosts({})).hosts;
  const name = host?.name ?? '';
  const refused = (call: Promise<unknown>) =>
    call.then(
      () => 'accepted',
      (error: unknown) => (error instanceof ApiFailure ? error.error.message : 'no answer'),
    );
  expect(await refused(hosts.resumeRun({ name }))).toContain('ask for a clean');
  expect(await refused(hosts.skipStep({ name }))).toContain('clean');
});
