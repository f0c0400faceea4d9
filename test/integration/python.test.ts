/** The Python client against real peers, and the programs of its page. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { LearningSpec } from '../../src/peer/index.js'
import { generateToken, type HttpOptions } from '../../src/server/index.js'
import { makeCertificate } from '../support/certificate.js'
import { CommandSandbox, httpPort } from '../support/command-sandbox.js'
import { blocks } from '../support/documents.js'
import { PeerServer, SPEC } from '../support/http-server.js'
import { until } from '../support/network-peers.js'
import { hasPython, runPython } from '../support/python.js'

const PAGE = 'docs/python.md'

/** The program prints one JSON value. `url` is the address of the peer. */
const HEAD = `import json, math, sys
from admb_client import Peer, PeerError
url = sys.argv[1]
peer = Peer(url)
def plain(values): return values.tolist() if hasattr(values, "tolist") else values
`

/** Hides NumPy from the client. */
const WITHOUT_NUMPY = 'import sys; sys.modules["numpy"] = None\n'

/** Rows by the values of a linear function, without randomness. */
const TRAINING = `X = [[math.sin(3 * i + j * (i % 7)) * (j + 1) for j in range(4)] for i in range(400)]
score = lambda x: x[0] - x[1] + 0.25 * x[2] + 0.3
`

describe('the Python client', function () {
  this.timeout(120_000)
  let served: PeerServer | undefined
  before(function () {
    if (!hasPython()) this.skip()
  })
  afterEach(async () => {
    await served?.stop()
    served = undefined
  })

  async function start(spec: Partial<LearningSpec> = {}, http: Partial<HttpOptions> = {}): Promise<void> {
    served = await PeerServer.start(http, { spec: { ...SPEC, batch: 16, ...spec } as LearningSpec })
  }

  const run = async (program: string, ...args: string[]) =>
    JSON.parse(await runPython(HEAD + program, served?.url as string, ...args))

  for (const [name, prefix] of [
    ['with NumPy', ''],
    ['without NumPy', WITHOUT_NUMPY]
  ] as const) {
    describe(name, () => {
      before(function () {
        if (prefix === '' && !hasPython('numpy')) this.skip()
      })
      const logistic = `${prefix}${HEAD}${TRAINING}
y = ["yes" if score(x) > 0 else "no" for x in X]
assert peer.partial_fit(X[:300], y[:300], classes=["no", "yes"]) is peer
probabilities = plain(peer.predict_proba(X[300:]))
print(json.dumps([plain(peer.classes_), plain(peer.coef_), plain(peer.intercept_), probabilities,
  X[300:], peer.score(X[300:], y[300:]), peer.n_features_in_]))`
      for (const scale of ['none', 'standard'] as const) {
        it(`learns, predicts, and reads coefficients (scale ${scale})`, async () => {
          await start({ features: { ...SPEC.features, constant: true, scale }, dimension: 5 })
          const [classes, [weights], [constant], probabilities, rows, accuracy, width] = JSON.parse(
            await runPython(logistic, served?.url as string)
          )
          assert.deepEqual(classes, ['no', 'yes'])
          assert.equal(width, 4)
          assert.ok(accuracy > 0.8, `${accuracy}`)
          for (const [i, row] of (rows as number[][]).entries()) {
            const decision = row.reduce((sum, value, j) => sum + value * weights[j], constant)
            assert.ok(Math.abs(1 / (1 + Math.exp(-decision)) - probabilities[i][1]) < 1e-5)
          }
        })
      }
    })
  }

  it('learns numbers and several classes', async () => {
    await start({ model: 'linear', features: { constant: true, scale: 'none' }, dimension: 5 })
    const [r2, coefficients, intercept, failure] = await run(`${TRAINING}
y = [10 * score(x) for x in X]
for _ in range(20): peer.partial_fit(X, y)
try: peer.predict_proba(X)
except AttributeError as error: failure = str(error)
print(json.dumps([peer.score(X, y), plain(peer.coef_), plain(peer.intercept_), failure]))`)
    assert.ok(r2 > 0.9, `${r2}`)
    for (const [i, expected] of [10, -10, 2.5, 0].entries()) assert.ok(Math.abs(coefficients[i] - expected) < 1)
    assert.ok(Math.abs(intercept - 3) < 1)
    assert.match(failure, /predicts numbers/)
    await served?.stop()

    await start({
      model: 'softmax',
      classes: 3,
      features: { constant: false, scale: 'none', classNames: ['-1', '0', '1'] }
    })
    const [classes, shape, predicted, accuracy] = await run(`${TRAINING}
y = [float((score(x) > 1) - (score(x) < -1)) for x in X]
for _ in range(10): peer.fit(X, y)
print(json.dumps([plain(peer.classes_), [len(peer.coef_), len(peer.coef_[0])], plain(peer.predict(X[:5])), peer.score(X, y)]))`)
    assert.deepEqual(classes, [-1, 0, 1])
    assert.deepEqual(shape, [3, 4])
    assert.ok(predicted.every((label: number) => classes.includes(label)))
    assert.ok(accuracy > 0.6, `${accuracy}`)
  })

  it('sends tables by column, with missing values and weights', async () => {
    const columns = [
      { name: 'age', kind: 'number', mean: 40, deviation: 12, missing: true },
      { name: 'city', kind: 'category' },
      { name: 'times', kind: 'ignored', role: 'weight' }
    ] as const
    const features = { constant: true, scale: 'none', columns, hashBits: 3, classNames: ['no', 'yes'] }
    await start({ dimension: 1 + 1 + 1 + 8, features } as Partial<LearningSpec>)
    const [names, dicts, lists, failures] = await run(`
rows = [{"age": 30 + i % 40, "city": "Oslo" if i % 2 else "Bergen"} for i in range(64)]
peer.partial_fit(rows, ["yes" if i % 2 else "no" for i in range(64)], sample_weight=[2.0] * 64)
failures = []
def fails(call):
    try: call()
    except (ValueError, AttributeError) as error: failures.append(str(error))
fails(lambda: peer.predict([[1]]))
fails(lambda: peer.coef_)
fails(lambda: peer.partial_fit(rows, ["no"]))
fails(lambda: peer.partial_fit(rows[:1], ["no"], classes=["no", "maybe"]))
print(json.dumps([plain(peer.feature_names_in_), plain(peer.predict_proba(rows[:2] + [{"city": "Oslo"}])),
  plain(peer.predict_proba([[30, "Bergen"], [31, "Oslo"], [math.nan, "Oslo"]])), failures]))`)
    assert.deepEqual(names, ['age', 'city'])
    assert.deepEqual(dicts, lists)
    assert.match(
      failures.join('\n'),
      /1 values, and the model has 2 columns: age, city\ncoef_ needs columns that are numbers.*\nX has 64 rows, and y has 1\n.*\['maybe'\]/
    )
    await until(() => served?.peer.status().weight === 128)
  })

  it('is configured as scikit-learn expects', async () => {
    await start()
    const [parameters, changed, refused, shown] = await run(`
copy = Peer(**peer.get_params())
copy.set_params(token="secret-of-sixteen", timeout=5)
try: copy.set_params(tokens=1)
except ValueError as error: refused = str(error)
print(json.dumps([peer.get_params(), copy.get_params(), refused, repr(copy)]))`)
    const url = served?.url
    assert.deepEqual(parameters, { url, token: null, ca: null, timeout: 30 })
    assert.deepEqual(changed, { url, token: 'secret-of-sixteen', ca: null, timeout: 5 })
    assert.match(refused, /'tokens' is not a parameter: use url, token, ca, timeout/)
    assert.ok(!shown.includes('secret'))
  })

  it('works in pipelines of scikit-learn', async function () {
    if (!hasPython('sklearn')) this.skip()
    await start()
    const score = await run(`${TRAINING}
from sklearn.base import clone, is_classifier
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
assert is_classifier(clone(peer))
y = ["yes" if score(x) > 0 else "no" for x in X]
model = make_pipeline(StandardScaler(), clone(peer)).fit(X, y)
cross_val_score(peer, X, y, cv=2)
print(model.score(X, y))`)
    assert.ok(score > 0.7, `${score}`)
  })

  it('waits while the peer is busy, and reports other errors with their code', async () => {
    const token = generateToken('predict')
    await start({}, { token, requestsPerSecond: 2 })
    const [count, codes] = await run(
      `
peer.token = sys.argv[2] + "\\n"
count = sum(len(peer.predict([[0, 0, 0, 1]])) for _ in range(4))
codes = []
for token in [None, "guessed", sys.argv[2]]:
    try: Peer(url, token=token).partial_fit([[0, 0, 0, 1]], ["yes"])
    except PeerError as error: codes.append([error.status, error.code])
try: Peer("http://127.0.0.1:1").schema()
except PeerError as error: codes.append([error.status, error.code])
print(json.dumps([count, codes]))`,
      token
    )
    assert.equal(count, 4)
    assert.deepEqual(codes, [
      [401, 'ERR_HTTP_TOKEN'],
      [401, 'ERR_HTTP_TOKEN'],
      [403, 'ERR_HTTP_ROLE'],
      [0, 'ERR_NO_PEER']
    ])
  })

  it('trusts the certificate that it is given', async function () {
    const folder = await mkdtemp(join(tmpdir(), 'admb-test-'))
    try {
      const files = makeCertificate(folder)
      if (files === undefined) this.skip()
      await start({}, { tls: { cert: readFileSync(files.cert), key: readFileSync(files.key) } })
      const [kind, code] = await run(
        `
try: peer.schema()
except PeerError as error: code = str(error)
print(json.dumps([Peer(url, ca=sys.argv[2]).schema()["label"]["kind"], code]))`,
        files.cert
      )
      assert.equal(kind, 'class')
      assert.match(code, /certificate verify failed.*ERR_NO_PEER/)
    } finally {
      await rm(folder, { recursive: true })
    }
  })

  describe('its page', () => {
    let place: CommandSandbox
    before(function () {
      if (!hasPython('numpy')) this.skip()
      place = new CommandSandbox()
    })
    afterEach(() => place?.kill())
    after(() => place?.remove())

    const program = (name: string, port: number) =>
      blocks(`python ${name}`, PAGE, 'python')[0].replaceAll(':7280', `:${port}`)
    const peerOf = (name: string) => blocks(`python ${name}`, PAGE)[0]

    it('the programs work as written', async () => {
      const port = httpPort(await place.start(`${peerOf('peer')} --http 0`))
      const first = program('first', port)
      const accuracy = /accuracy (0\.\d+)/.exec(await runPython(first))?.[1]
      assert.ok(Number(accuracy) > 0.9, accuracy)
      if (hasPython('sklearn')) {
        const score = (await runPython(`${first}\n${program('pipeline', port)}`)).trim().split('\n').at(-1)
        assert.ok(Number(score) > 0.9, score)
      }
      const table = httpPort(await place.start(`${peerOf('table-peer')} --http 0`))
      assert.match(await runPython(program('table', table)), /^\['age' 'income' 'region'\]\n\['no' 'yes'\]/)
    })

    it('tokens and HTTPS work as written', async function () {
      const files = makeCertificate(place.folder)
      if (files === undefined) this.skip()
      place.run('npx admb keygen token --role predict --out predict.token')
      const access = '--http-cert http.cert --http-key http.key --http-token-file predict.token'
      const port = httpPort(await place.start(`${peerOf('peer')} ${access} --http 0`))
      const text = `import os\nos.chdir(${JSON.stringify(place.folder)})\n${program('secure', port)}`
      assert.match(await runPython(text), /^\['no'\]\nERR_HTTP_ROLE the token has the role predict/)
    })
  })
})
