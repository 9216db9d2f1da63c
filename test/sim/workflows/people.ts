/** People who write templates and run workflows, beside whoever keeps the rack going. */
import type { HostId } from '@rackwright/messages';
import { ask, counterOf } from '../operators/counter.ts';
import { keptHosts, machineOf } from '../operators/records.ts';
import type { WorldView } from '../view.ts';
import { actsOfAuthors, workflowActs } from './acts.ts';

/** Between two acts, for as long as there are faults. */
const pauseMs = 6_000;
/** Their requests are counted from here, so that no operator's has the same id. */
const firstRequest = 1_000_000;

/** Acts until the faults stop. */
export function startAuthors(view: WorldView): void {
  let asked = firstRequest;
  const pick = <T>(choices: readonly T[]) => view.chance.pick(choices);
  const turn = () => {
    if (!view.faulty()) return;
    view.heap.after(view.chance.around(pauseMs), turn);
    const replicas = view.replicas();
    const hosts = keptHosts(view);
    if (replicas.length === 0 || hosts.length === 0) return;
    const replica = pick(replicas);
    const host = pick(hosts);
    const machine = machineOf(view, host);
    if (machine === undefined) return;
    asked += 1;
    const nowMs = replica.process.clock.nowMs();
    const { name, prepare } = missing(view, host.id, pick) ?? weighed(view);
    const call = prepare({ view, host, machine, nowMs, requestId: `q${asked}`, pick });
    ask(view, () => call(counterOf(view, replica))).then(
      (answer) => {
        const text = answer.kind === 'refused' ? answer.error.message : '';
        view.trace(`author: ${name} ${host.id} ${answer.kind} ${text}`);
        view.count(`author ${answer.kind}`);
        if (answer.kind !== 'refused' || answer.error.kind !== 'internal') return;
        view.found('O3', `${name}: ${text}`);
      },
      (error: unknown) => view.found('O3', `${name} threw: ${String(error)}`),
    );
  };
  view.heap.after(view.chance.around(pauseMs), turn);
}

/** What has to be there before anything can run. */
function missing(view: WorldView, hostId: HostId, pick: <T>(choices: readonly T[]) => T) {
  const isThere = (prefix: string) =>
    view
      .storeDisk()
      .lastChanges(prefix)
      .some(({ kind }) => kind === 'put');
  const [write, make] = ['write a template', 'make a workflow'];
  const name = !isThere('templates') ? write : isThere(`workflows.${hostId}`) ? '' : make;
  return pick([true, false]) ? workflowActs.find((act) => act.name === name) : undefined;
}

function weighed(view: WorldView) {
  const choices = actsOfAuthors(view);
  const sum = choices.reduce((total, { weight }) => total + weight, 0);
  let left = view.random.fraction() * sum;
  const [first] = choices;
  if (first === undefined) throw new Error('there is nothing to do');
  return choices.find(({ weight }) => (left -= weight) < 0) ?? first;
}
