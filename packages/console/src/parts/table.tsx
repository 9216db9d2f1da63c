/** A plain table of rows that are all at hand. */
import type { ComponentChildren } from 'preact';

export interface Column<T> {
  readonly title: string;
  readonly cell: (row: T) => ComponentChildren;
  /** Numbers stand at the right. */
  readonly isNumber?: boolean;
  /** Left out where the page is narrow. */
  readonly isMinor?: boolean;
}

interface TableProps<T> {
  readonly label: string;
  readonly columns: readonly Column<T>[];
  readonly rows: readonly T[];
  readonly keyOf: (row: T) => string;
}

export function Table<T>({ label, columns, rows, keyOf }: TableProps<T>) {
  return (
    <div class="table-frame" role="region" aria-label={label} tabIndex={0}>
      <table>
        <caption class="unseen">{label}</caption>
        <thead>
          <tr>
            {columns.map((column) => (
              <th key={column.title} scope="col" class={classOf(column)}>
                {column.title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={keyOf(row)}>
              {columns.map((column) => (
                <td key={column.title} class={classOf(column)}>
                  {column.cell(row)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function classOf<T>({ isNumber, isMinor }: Column<T>): string | undefined {
  const names = [isNumber === true && 'number', isMinor === true && 'minor'].filter(Boolean);
  return names.length === 0 ? undefined : names.join(' ');
}
