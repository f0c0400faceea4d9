/** `GET /metrics`: metrics of the peer and its process, in the format of Prometheus. */
import type { FastifyInstance } from 'fastify'
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
import { type Figures, type Peer, type PeerStatus, windowName } from '../../peer/index.js'
import type { RouteOptions } from '../options.js'
import { failures } from '../schemas/index.js'

/** Counters by name without `admb_`, read from the status at each scrape. */
const COUNTERS: Readonly<Record<string, readonly [help: string, read: (status: PeerStatus) => number | undefined]>> = {
  inputs_total: ['Inputs learned, including earlier runs', ({ inputs }) => inputs],
  loss_nats_total: [
    'Progressive loss, summed over inputs (half squared errors for model linear)',
    ({ averageLoss, inputs, weight = inputs }) => averageLoss * weight
  ],
  hits_total: [
    'Inputs whose class was predicted correctly before they were learned',
    ({ accuracy, inputs, weight = inputs }) => (accuracy === undefined ? undefined : Math.round(accuracy * weight))
  ],
  adopted_predictors_total: ['Predictors adopted from other peers in this run', ({ adopted }) => adopted],
  discarded_gradients_total: ['Local gradients that came too late for a batch', ({ gradients }) => gradients.late],
  skipped_inputs_total: ['Inputs that were malformed or did not fit the model', ({ skipped }) => skipped],
  drift_alarms_total: ['Rises of the loss that were detected in this run', ({ drift }) => drift?.alarms],
  network_drift_alarms_total: [
    'Rises of the loss at most peers of the network in this run',
    ({ networkDrifts }) => networkDrifts
  ],
  received_messages_total: ['Frames received over tree edges', ({ received }) => received.messages],
  received_bytes_total: ['Bytes of frames received over tree edges', ({ received }) => received.bytes],
  sent_messages_total: ['Frames sent over tree edges', ({ sent }) => sent.messages],
  sent_bytes_total: ['Bytes of frames sent over tree edges', ({ sent }) => sent.bytes],
  float32_sum_bytes_total: [
    'About what the sent sums and steps would take as float32 numbers',
    ({ sent }) => sent.kinds.float32
  ]
}

/** Kinds of content of sent frames, the values of the label `kind` of `admb_sum_bytes_total`. */
const KINDS = ['sums', 'steps', 'predictors', 'other'] as const

const GAUGES: Readonly<Record<string, readonly [help: string, read: (status: PeerStatus) => number | undefined]>> = {
  predictor_updates: ['Updates of the predictor', ({ updates }) => updates],
  batch: ['b: gradients that the next update needs', ({ batch }) => batch],
  neighbours: ['Neighbours in the tree', ({ neighbours }) => neighbours.length],
  gradients_discarded_ratio: [
    'Share of the gradients of the last minute that no batch used',
    ({ discardedShare }) => discardedShare
  ],
  residual_ratio: [
    'Share of the squared norm of the last segment that rounding has left for the next one',
    ({ residualShare }) => residualShare
  ],
  clipped_ratio: [
    'Share of the squared norm of own recent sums that the bound of influence takes',
    ({ clippedShare }) => clippedShare
  ],
  privacy_epsilon: ['Budget of differential privacy of each input', ({ privacy }) => privacy?.epsilon],
  privacy_spent_epsilon: ['What is spent of it', ({ privacy }) => privacy?.spent],
  privacy_exhausted: [
    '1 if the budget of differential privacy is spent: no more inputs are learned',
    ({ privacy }) => privacy && Number(privacy.exhausted)
  ],
  incarnation: ['Number of this run from one state directory', ({ incarnation }) => incarnation],
  stream_ended: ['1 if the stream has ended', ({ ended }) => Number(ended)]
}

/**
 * Figures over windows, named `admb_recent_NAME`, with the label `window`: `1000`, `10000` (inputs), or a time,
 * such as `1h`.
 */
const RECENT: Readonly<Record<string, readonly [key: keyof Figures, help: string]>> = {
  loss_nats: ['loss', 'Mean progressive loss (half the mean squared error for model linear)'],
  accuracy: ['accuracy', 'Share of inputs whose class was predicted correctly before they were learned'],
  balanced_accuracy: ['balancedAccuracy', 'Mean over the classes of the share that was predicted correctly'],
  auc: ['auc', 'Area under the ROC curve'],
  calibration_error: ['calibrationError', 'Expected calibration error'],
  rmse: ['rmse', 'Root mean squared error'],
  mae: ['mae', 'Mean absolute error'],
  r2: ['r2', 'Share of the variance of the target that is predicted'],
  perplexity: ['perplexity', 'Exponential of the loss of a model that predicts the next token']
}

const REQUESTS = {
  name: 'admb_http_request_duration_seconds',
  help: 'Time from the head of a request to the end of its response',
  labelNames: ['method', 'route', 'status'],
  buckets: [0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10]
}

/** Measures all requests, so it is registered on the app itself, not as a plugin. */
export function metricsRoutes(app: FastifyInstance, { peer }: RouteOptions): void {
  const register = new Registry()
  collectDefaultMetrics({ register })
  watch(peer, register)
  const requests = new Histogram({ ...REQUESTS, registers: [register] })
  app.addHook('onResponse', async (request, reply) => {
    const labels = { method: request.method, route: request.routeOptions.url ?? 'unknown', status: reply.statusCode }
    requests.observe(labels, reply.elapsedTime / 1000)
  })
  const type = register.contentType
  const schema = {
    summary: 'Metrics for Prometheus',
    response: { 200: { description: 'Text', content: { 'text/plain': { schema: { type: 'string' } } } }, ...failures }
  }
  app.get('/metrics', { config: { roles: ['read'] }, schema }, async (_request, reply) =>
    reply.type(type).send(await register.metrics())
  )
}

function watch(peer: Peer, register: Registry): void {
  const registers = [register]
  for (const [name, [help, read]] of Object.entries(COUNTERS)) {
    new Counter({
      name: `admb_${name}`,
      help,
      registers,
      collect() {
        this.reset()
        this.inc(read(peer.status()) ?? 0)
      }
    })
  }
  new Counter({
    name: 'admb_sum_bytes_total',
    help: 'Bytes of frames sent over tree edges by what they carry',
    labelNames: ['kind'],
    registers,
    collect() {
      this.reset()
      const { kinds } = peer.status().sent
      for (const kind of KINDS) this.inc({ kind }, kinds[kind])
    }
  })
  for (const [name, [key, help]] of Object.entries(RECENT)) {
    new Gauge({
      name: `admb_recent_${name}`,
      help: `${help}, over the last inputs of this run`,
      labelNames: ['window'],
      registers,
      collect() {
        this.reset()
        for (const [window, figures] of windowsOf(peer.status())) {
          const value = figures[key]
          if (typeof value === 'number') this.set({ window }, value)
        }
      }
    })
  }
  for (const [name, [help, read]] of Object.entries(GAUGES)) {
    new Gauge({
      name: `admb_${name}`,
      help,
      registers,
      collect() {
        const value = read(peer.status())
        if (value !== undefined) this.set(value)
      }
    })
  }
}

/** The windows that hold inputs. */
function windowsOf({ metrics }: PeerStatus): (readonly [window: string, Partial<Figures>])[] {
  if (metrics === undefined) return []
  const { recent, byTime } = metrics
  const timed = byTime?.windows.map(figures => [windowName(figures.seconds), figures] as const) ?? []
  const windows = recent.map(figures => [String(figures.window), figures] as const)
  return [...windows, ...timed].filter(([, { inputs }]) => inputs > 0)
}
