import type { RunStep } from './gen/rackwright/v1/run_pb.ts';

/** Whether the step is one of a template: only those have titles of their own. */
export function hasTitle({ title }: Pick<RunStep, 'title'>): boolean {
  return title !== '';
}

/** "look (run.script)", or "power.off" for a step without a title. */
export function stepText({ name, title }: Pick<RunStep, 'name' | 'title'>): string {
  return hasTitle({ title }) ? `${title} (${name})` : name;
}
