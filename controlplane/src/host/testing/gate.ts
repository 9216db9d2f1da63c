/** Holds callers back while it is closed. It is open at first. */
export class Gate {
  #opened = Promise.withResolvers<void>();

  constructor() {
    this.open();
  }

  close(): void {
    this.#opened = Promise.withResolvers<void>();
  }

  open(): void {
    this.#opened.resolve();
  }

  pass(): Promise<void> {
    return this.#opened.promise;
  }
}
