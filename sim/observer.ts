/**
 * Eyes on a run: reports, checkers and replays watch it through this and change nothing in it.
 */
import type { PredictorId } from '../src/admb/index.js'
import type { Fault } from './faults/schedule.js'

export interface Observer {
  /** One more input was served. @param inputs so many, so far */
  served?(inputs: number): void
  /**
   * A fault is about to strike; those that change nothing are not told. A node that is absent at first leaves at time 0.
   * @param time virtual ms
   */
  fault?(time: number, fault: Fault): void
  /** An event is about to be carried out. @param time virtual ms @param what one readable line, made only if called */
  event?(time: number, what: () => string): void
  /** A node holds another predictor from now on. */
  holds?(time: number, node: number, id: PredictorId, how: 'updated' | 'adopted' | 'restarted'): void
  /** An event has been carried out. Whatever is thrown here ends the run. */
  after?(time: number): void
}
