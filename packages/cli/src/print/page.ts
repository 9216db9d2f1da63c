/** The content of a printed page, before it is HTML or PDF. Pure. */

export interface PrintedPage {
  readonly title: string;
  /** The page's result, in one line, and whether that is good. */
  readonly result: { readonly text: string; readonly good: boolean };
  readonly sections: readonly PageSection[];
  readonly footer: string;
}

export type PageSection =
  | {
      readonly kind: 'fields';
      readonly heading: string;
      readonly fields: readonly (readonly [label: string, value: string])[];
    }
  | {
      readonly kind: 'table';
      readonly heading: string;
      readonly columns: readonly string[];
      /** Shares of the width. */
      readonly widths: readonly number[];
      readonly rows: readonly (readonly string[])[];
    }
  | {
      /** Lines on which people sign the printed page. */
      readonly kind: 'signatures';
      readonly heading: string;
      readonly labels: readonly string[];
    };

/** A size as people read it and exactly: "1.00 TB (1,000,204,886,016 bytes)". */
export function sizeText(bytes: number): string {
  const exact = `${grouped(bytes)} bytes`;
  const unit = units.find(({ size }) => bytes >= size);
  return unit === undefined
    ? exact
    : `${(bytes / unit.size).toPrecision(3)} ${unit.name} (${exact})`;
}

/** With a comma after each three digits. */
export function grouped(count: number): string {
  return String(count).replaceAll(/\B(?=(\d{3})+$)/g, ',');
}

const units = [
  { size: 1e12, name: 'TB' },
  { size: 1e9, name: 'GB' },
  { size: 1e6, name: 'MB' },
];
