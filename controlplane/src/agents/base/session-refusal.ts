/** The closed list of why a session is refused or ended: the values of `Refused.reason`. */
export type SessionRefusal =
  | 'duplicateAgent'
  | 'unknownRack'
  | 'badHello'
  | 'keyRevoked'
  | 'keyReplaced'
  | 'certificateExpired';
