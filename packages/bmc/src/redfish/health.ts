/** A Redfish service's report about the health of a resource (DSP0268 `Status`). */
import type { HardwareHealth, HealthLevel } from '../readings.ts';
import { variantsOf } from '../vendors.ts';
import type { Resource } from './conversation.ts';
import { type JsonObject, objectAt, objectsAt, textAt } from './json.ts';

/** DSP0268 `Status.Health`; undefined: it says nothing, or another word. */
export function levelOf(body: JsonObject): HealthLevel | undefined {
  return levelNamed(textAt(objectAt(body, 'Status'), 'Health'));
}

export function levelNamed(word: string | undefined): HealthLevel | undefined {
  switch (word?.toLowerCase()) {
    case 'ok':
      return 'ok';
    case 'warning':
      return 'warning';
    case 'critical':
      return 'critical';
    default:
      return undefined;
  }
}

/** A system's report about itself and its parts; undefined: none. */
export function healthOf({ body }: Resource): HardwareHealth | undefined {
  const status = objectAt(body, 'Status');
  const rollup = variantsOf('healthRollup').map((key) => textAt(status, key));
  const level = levelNamed([...rollup, textAt(status, 'Health')].find((one) => one !== undefined));
  if (level === undefined) return undefined;
  const parts = (['ProcessorSummary', 'MemorySummary'] as const).flatMap((key) => {
    const own = levelOf(objectAt(body, key));
    return own === undefined || own === 'ok' ? [] : [`${key} ${own}`];
  });
  const messages = objectsAt(status, 'Conditions').flatMap((one) => textAt(one, 'Message') ?? []);
  return { level, text: level === 'ok' ? '' : [...messages, ...parts].join('; ').slice(0, 512) };
}
