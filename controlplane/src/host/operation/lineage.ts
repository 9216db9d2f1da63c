/**
 * R9: which life of an agent's journal has which data. A journal that was restored from an older
 * copy has lost later operations, and reaches the same generations again; only its lives
 * distinguish them. Pure.
 */
import { create } from '@bufbuild/protobuf';
import { agent } from '@rackwright/messages';

/** Whether `journal` descends from `sentTo`: the same life, or a later one of it. */
export function isDescendantOf(journal: agent.Journal, sentTo: agent.Journal): boolean {
  if (sentTo.id !== journal.id || sentTo.generation > journal.generation) return false;
  // An agent that reports no lives is judged by its generation.
  if (sentTo.life === 0n || journal.life === 0n) return true;
  return sentTo.life === journal.life || journal.earlierLives.includes(sentTo.life);
}

/** Whether both are the same life. */
export function isSameLife(a: agent.Journal, b: agent.Journal): boolean {
  return a.id === b.id && a.generation === b.generation && a.life === b.life;
}

/** The stored part of a journal: the life that an operation was sent to. */
export function lifeOf({ id, generation, life }: agent.Journal): agent.Journal {
  return create(agent.JournalSchema, { id, generation, life });
}
