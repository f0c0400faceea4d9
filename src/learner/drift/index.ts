/** Detection of drift in the progressive loss. */
export { Adwin, type AdwinOptions, type Change, type Sums } from './adwin.js'
export {
  ALARMS_KEPT,
  type Drift,
  type DriftAlarm,
  DriftDetector,
  DriftLog,
  type DriftTest,
  describeAlarm,
  driftTests
} from './detector.js'
