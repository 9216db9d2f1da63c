/** The existing workflows, by host, and whether each had an open run when last seen. */
import type { HostId, TemplateId } from '@rackwright/messages';
import type { WorkflowId } from './names.ts';

const none: ReadonlyMap<TemplateId, boolean> = new Map();

export class SeenWorkflows {
  readonly #byHost = new Map<HostId, Map<TemplateId, boolean>>();

  set({ hostId, templateId }: WorkflowId, open: boolean): void {
    const ofHost = this.#byHost.get(hostId);
    if (ofHost === undefined) this.#byHost.set(hostId, new Map([[templateId, open]]));
    else ofHost.set(templateId, open);
  }

  delete({ hostId, templateId }: WorkflowId): void {
    const ofHost = this.#byHost.get(hostId);
    ofHost?.delete(templateId);
    if (ofHost?.size === 0) this.#byHost.delete(hostId);
  }

  /** Forgets all but these. */
  keepOnly(there: readonly WorkflowId[]): void {
    const before = [...this.#all()];
    this.#byHost.clear();
    for (const id of there) this.set(id, false);
    for (const [id, open] of before) {
      if (open && this.ofHost(id.hostId).has(id.templateId)) this.set(id, true);
    }
  }

  /** For one host: by template, whether a run was open. */
  ofHost(hostId: HostId): ReadonlyMap<TemplateId, boolean> {
    return this.#byHost.get(hostId) ?? none;
  }

  /** Those that had an open run. */
  open(): WorkflowId[] {
    return [...this.#all()].filter(([, open]) => open).map(([id]) => id);
  }

  *#all(): Iterable<readonly [WorkflowId, boolean]> {
    for (const [hostId, ofHost] of this.#byHost) {
      for (const [templateId, open] of ofHost) yield [{ hostId, templateId }, open];
    }
  }
}
