/** How likely a process of the simulation dies at one of its crash points. */
import { writtenPoint } from './slow-store.ts';

const usually = 0.02;
/** Where programs of templates are at work, which is rare. */
const atPrograms = 0.15;
const afterWrites = 0.06;
const programPoints: ReadonlySet<string> = new Set(['runner.programStarted', 'runner.handingOff']);

/** From 0 to 1. */
export function crashChanceAt(point: string): number {
  if (point.startsWith(writtenPoint)) return afterWrites;
  return programPoints.has(point) ? atPrograms : usually;
}
