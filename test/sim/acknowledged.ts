/** A write that a store has acknowledged to a control plane. */
export interface StoredWrite {
  readonly key: string;
  readonly revision: number;
  readonly writeId: string;
}
