/** The one place that makes a text for people of any thrown value. */

/** How far a chain of causes is followed: an error may be its own cause. */
const causesMax = 8;

/**
 * The message of a caught value, and after a colon that of each cause. A cause that the message
 * says already is left out; so is one without a message. Never throws.
 */
export function errorText(caught: unknown): string {
  let text = messageOf(caught);
  let cause = causeOf(caught);
  for (let count = 0; cause !== undefined && count < causesMax; count += 1) {
    const message = messageOf(cause);
    if (!text.includes(message)) text = text === '' ? message : `${text}: ${message}`;
    cause = causeOf(cause);
  }
  return text;
}

function causeOf(caught: unknown): unknown {
  try {
    return caught instanceof Error ? caught.cause : undefined;
  } catch {
    // The getter throws. The text has no cause then.
    return undefined;
  }
}

function messageOf(caught: unknown): string {
  try {
    if (!(caught instanceof Error)) return String(caught);
    // A thrown object may have any value here.
    const message: unknown = caught.message;
    // An error without a message has its name at least: an AggregateError of a failed connection.
    return String(message) || (errorCode(caught) ?? caught.name);
  } catch {
    // The error has no text. This function must not throw.
    return 'no text can be made of it';
  }
}

/** Node's code of a caught value (ECONNREFUSED), where it has one. */
export function errorCode(caught: unknown): string | undefined {
  if (!(caught instanceof Error)) return undefined;
  const code: unknown = Reflect.get(caught, 'code');
  return typeof code === 'string' ? code : undefined;
}
