/**
 * A program of the site's own in the automatic cleans of a simulated rack. It writes to the first
 * disk of its machine, as any program may.
 */
import type { OwnCleanStep } from '@rackwright/messages';
import { imageReference } from './images.ts';
import { markText } from './recipes.ts';

/** Stands in the marks of its programs in place of a template. */
export const ownTemplate = 'own';
const title = 'scribble';

/** A step as the fleet's record takes it. */
export type Own = Partial<Omit<OwnCleanStep, '$typeName' | '$unknown'>>;

const policies = ['', 'continue', 'hold'];

/** The programs of a world of this seed; most have none. */
export function ownStepsOf(seed: number): readonly Own[] {
  if (seed % 8 !== 5) return [];
  const kind = Math.floor(seed / 8);
  return [
    {
      name: title,
      image: imageReference,
      arguments: [markText({ templateId: ownTemplate, version: 1, title })],
      // Every second one would stand behind the erasure by its priority.
      priority: kind % 2 === 0 ? 100 : 1,
      idempotent: kind % 3 === 0,
      retries: kind % 2,
      onFailure: policies[kind % policies.length] ?? '',
    },
  ];
}
