/** A list that goes on. */
import type { ComponentChildren } from 'preact';
import type { MorePages } from '../browser/more.ts';
import { Loading } from './basics.tsx';
import { FailureBox } from './errors.tsx';

interface MoreProps {
  /** "The runs cannot be listed" */
  readonly subject: string;
  readonly listed: Omit<MorePages<unknown>, 'rows'> & { readonly rows: readonly unknown[] };
  readonly children: ComponentChildren;
}

export function More({ subject, listed, children }: MoreProps) {
  const { failure, isLoading, rows, hasMore, more, reload } = listed;
  return (
    <>
      {failure !== undefined && <FailureBox subject={subject} failure={failure} retry={reload} />}
      {rows.length === 0 && isLoading ? <Loading subject="Reading" /> : children}
      {hasMore && (
        <button type="button" class="more" disabled={isLoading} onClick={more}>
          Show more
        </button>
      )}
    </>
  );
}
