/**
 * What keeps destructive work from beginning, as a renewal of the lease says it. Pure.
 *
 * B1 A renewal that names a kind or a text is a brake.
 * B2 A text without a kind is a brake: an older control plane sends no kind.
 * B3 A kind that is not known here is a brake: a newer control plane may have further ones.
 */
import { agent } from '@rackwright/messages';

export interface SessionBrake {
  /** For people. */
  readonly text: string;
}

/** The brake of a renewal; undefined: destructive work may begin. */
export function brakeOf({
  brake,
  frozen,
}: Pick<agent.LeaseRenewal, 'brake' | 'frozen'>): SessionBrake | undefined {
  if (brake === agent.BrakeKind.UNSPECIFIED && frozen === '') return undefined;
  return { text: frozen === '' ? 'the control plane permits none' : frozen };
}
