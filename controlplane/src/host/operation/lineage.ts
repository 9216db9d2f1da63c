/**
 * R9: which life of an agent's journal knows what. A journal that was put back to an older copy has
 * forgotten what it was sent since, and comes to the same generations again; only its lives tell.
 * Pure.
 */
import { create } from '@bufbuild/protobuf';
import { agent } from '@rackwright/messages';

/** Whether `journal` has been what `sentTo` names: the same life, or a later one of it. */
export function descends(journal: agent.Journal, sentTo: agent.Journal): boolean {
  if (sentTo.id !== journal.id || sentTo.generation > journal.generation) return false;
  // An agent that tells no lives is believed by its generation.
  if (sentTo.life === 0n || journal.life === 0n) return true;
  return sentTo.life === journal.life || journal.earlierLives.includes(sentTo.life);
}

/** Whether two name the same life. */
export function isSameLife(a: agent.Journal, b: agent.Journal): boolean {
  return a.id === b.id && a.generation === b.generation && a.life === b.life;
}

/** What is stored of a journal: the life that something went to. */
export function lifeOf({ id, generation, life }: agent.Journal): agent.Journal {
  return create(agent.JournalSchema, { id, generation, life });
}
