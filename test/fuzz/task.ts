/** What a worker is asked, and what it answers. Inputs travel as base64, or in files. */
import type { Failure } from './target.ts';

interface TaskBasics {
  readonly target: string;
  /** Where the worker notes the input that it is about to parse. */
  readonly notedPath: string;
}

export type Task = TaskBasics &
  (
    | {
        readonly kind: 'campaign';
        readonly seed: number;
        readonly seconds: number;
        readonly inputs: number;
        readonly failuresMax: number;
      }
    /** Calls the parser with one input. */
    | { readonly kind: 'replay'; readonly inputPath: string; readonly growth: boolean }
    /** Makes an input smaller that fails without ending its process. */
    | {
        readonly kind: 'reduce';
        readonly inputPath: string;
        readonly failure: Failure;
        readonly seconds: number;
      }
  );

export interface CampaignAnswer {
  readonly inputs: number;
  readonly seconds: number;
  readonly places: number;
  readonly reached: readonly string[];
  readonly failures: readonly { readonly failure: Failure; readonly input: string }[];
}

export interface ReplayAnswer {
  /** Undefined: the input does not fail. */
  readonly failure?: Failure;
}

export interface ReduceAnswer {
  readonly input: string;
}

export type TaskAnswer = CampaignAnswer | ReplayAnswer | ReduceAnswer;
