import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  addSurroundings,
  type Fixture,
  failureOf,
  startFixture,
  violatedFields,
} from '../services/rpc.fixture.ts';

const name = 'racks/r1';

function image(n: number): string {
  return `registry.example/os@sha256:${n.toString(16).padStart(64, '0')}`;
}

let fixture: Fixture;

beforeAll(async () => {
  fixture = await startFixture();
  await addSurroundings(fixture);
});

afterAll(() => fixture.stop());

test('an image stands in the list of its rack, once for each way of having it', async () => {
  const { racks } = fixture;
  const made = await racks.prefetchImage({ name, image: image(1), requestId: 'p1' });
  expect(made).toMatchObject({
    rack: name,
    ...{ image: image(1), reference: image(1), architecture: 'amd64', netboot: false },
    ...{ requestedBy: 'user:admin', done: false, problem: '' },
  });
  await racks.prefetchImage({ name, image: image(1), requestId: 'p1' });
  await racks.prefetchImage({ name, image: `registry.example/os:1@${image(1).split('@')[1]}` });
  await racks.prefetchImage({ name, image: image(1), netboot: true });
  const { images } = await racks.listPrefetchedImages({ name });
  expect(images.map(({ reference, netboot }) => [reference, netboot])).toEqual([
    [image(1), false],
    [image(1), true],
  ]);
  await racks.dropPrefetchedImage({ name, image: image(1) });
  expect((await racks.listPrefetchedImages({ name })).images).toEqual([]);
});

test('a mistake is refused with the name of its field, and nothing is stored', async () => {
  const { racks } = fixture;
  const wrong = { name, image: 'registry.example/os', architecture: 'sparc' };
  expect(await violatedFields(racks.prefetchImage(wrong))).toEqual(['image', 'architecture']);
  const noRack = { name: 'racks/none', image: image(1) };
  expect((await failureOf(racks.prefetchImage(noRack))).kind).toBe('notFound');
  const none = racks.dropPrefetchedImage({ name, image: image(9) });
  expect((await failureOf(none)).kind).toBe('notFound');
  expect((await racks.listPrefetchedImages({ name })).images).toEqual([]);
});

test('an image that the fleet keeps from agents is refused, as a deployment is', async () => {
  const { racks } = fixture;
  const file = `http://files.example/os.raw#sha256=${'1'.repeat(64)}`;
  const refused = await failureOf(racks.prefetchImage({ name, image: file }));
  expect(refused).toMatchObject({
    kind: 'invalidArgument',
    violations: [
      { field: 'image', description: expect.stringContaining('set files.example --plain-http') },
    ],
  });
  expect((await racks.listPrefetchedImages({ name })).images).toEqual([]);
});

test('a request id answers the same again, and never what is not there any more', async () => {
  const { racks } = fixture;
  const made = await racks.prefetchImage({ name, image: image(1), requestId: 'r1' });
  // An image that was already there is stored with the id, too.
  const again = { name, image: image(1), requestId: 'r2' };
  expect((await racks.prefetchImage(again)).createTime).toEqual(made.createTime);
  const other = await failureOf(racks.prefetchImage({ ...again, image: image(2) }));
  expect(other.message).toContain('"r2" was answered before');
  expect((await failureOf(racks.prefetchImage({ ...again, netboot: true }))).message).toContain(
    'ask with another request id',
  );
  const { images } = await racks.listPrefetchedImages({ name });
  expect(images.map(({ reference, rack }) => [reference, rack])).toEqual([[image(1), name]]);
  const drop = { name, image: image(1), requestId: 'd1' };
  const dropped = await racks.dropPrefetchedImage(drop);
  expect(dropped).toMatchObject({ image: image(1), reference: image(1), architecture: 'amd64' });
  expect(await racks.dropPrefetchedImage(drop)).toMatchObject({
    ...{ image: image(1), reference: image(1), architecture: 'amd64' },
  });
  for (const requestId of ['r1', 'r2']) {
    const gone = await failureOf(racks.prefetchImage({ name, image: image(1), requestId }));
    expect(gone.message).toContain(`${name} has no ${image(1)} to fetch beforehand by it any more`);
  }
  expect((await racks.listPrefetchedImages({ name })).images).toEqual([]);
});

test('a rack is asked for sixteen images at most', async () => {
  const { racks } = fixture;
  for (let n = 1; n <= 16; n += 1) await racks.prefetchImage({ name, image: image(n) });
  const tooMany = await failureOf(racks.prefetchImage({ name, image: image(17) }));
  expect(tooMany.message).toContain('has 16 images to fetch beforehand');
  // An image that is already there does not count twice.
  await racks.prefetchImage({ name, image: image(16) });
  expect((await racks.listPrefetchedImages({ name })).images).toHaveLength(16);
});
