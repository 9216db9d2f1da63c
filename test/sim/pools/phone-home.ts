/** How machines say that they run what was put onto them: to the agent of their rack. */
import type { DiskImage } from '../drives.ts';
import type { PartView } from '../part-view.ts';

/** What it was told; undefined: nobody was there. */
export async function phoneHome(
  view: PartView,
  machine: string,
  { phoneHome: url }: DiskImage,
): Promise<string | undefined> {
  const [, id = '', token = ''] = /\/phone-home\/([^/]+)\/([^/]+)$/.exec(url) ?? [];
  const agents = view.agents();
  if (agents.length === 0 || id === '' || view.chance.happens(0.1)) return undefined;
  const { process, core } = view.chance.pick(agents);
  const call = () => core.proofs.phoneHome(id, token, machine);
  const heard = await new Promise<string | undefined>((resolve) => {
    process.whenKilled(() => resolve(undefined));
    process.enter(() => void call().then(resolve, () => resolve(undefined)));
  });
  // What was heard may be said once more, at any time, by whoever keeps a copy of it.
  if (view.chance.happens(0.3)) {
    view.count('phoned home again');
    view.heap.after(view.chance.around(view.chance.pick([1_000, 60_000, 400_000])), () => {
      for (const agent of view.agents()) {
        agent.process.enter(() => void agent.core.proofs.phoneHome(id, token, machine));
      }
    });
  }
  view.trace(`${machine} phones home: ${heard ?? 'nobody hears it'}`);
  return heard;
}
