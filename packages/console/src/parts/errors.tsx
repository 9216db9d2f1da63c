/** Failures, each with what happened, why, and what to do. */
import { type Failure, failureTextOf } from '../logic/failure.ts';

interface FailureProps {
  /** What did not work, as a sentence: "The hosts cannot be listed". */
  readonly subject: string;
  readonly failure: Failure;
  readonly retry?: () => void;
}

export function FailureBox({ subject, failure, retry }: FailureProps) {
  const text = failureTextOf(subject, failure);
  const reference = failure.metadata['reference'];
  return (
    <div class="failure" role="alert">
      <strong>{text.subject}</strong>
      {failure.violations.length === 0 ? (
        <p>{text.why}</p>
      ) : (
        <ul>
          {failure.violations.map(({ field, description }) => (
            <li key={`${field} ${description}`}>
              <code>{field}</code> {description}
            </li>
          ))}
        </ul>
      )}
      <p class="advice">{text.advice}</p>
      {reference !== undefined && (
        <p>
          Reference: <code>{reference}</code>
        </p>
      )}
      {retry !== undefined && (
        <button type="button" onClick={retry}>
          Try again
        </button>
      )}
    </div>
  );
}
