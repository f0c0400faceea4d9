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

const PAGE = 'docs/guides/python.md'

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

  for (const [name, prefix] of [
    ['with NumPy', ''],
    ['without NumPy', WITHOUT_NUMPY]
  ] as const)
    it(`learns and predicts row by row, as in River (${name})`, async function () {
      if (prefix === '' && !hasPython('numpy')) this.skip()
      const columns = [{ name: 'age', kind: 'number' }] as const
      const features = { constant: true, scale: 'none', columns, classNames: ['no', 'yes'] }
      await start({ dimension: 2, features } as Partial<LearningSpec>)
      const [hits, last, probabilities, many] = JSON.parse(
        await runPython(
          `${prefix}${HEAD}
rows = [({"age": (i % 5) - 2}, "yes" if i % 5 > 2 else "no") for i in range(100)]
hits = 0
for x, y in rows:
    hits += peer.predict_one(x) == y
    peer.learn_one(x, y)
peer.learn_many([x for x, _ in rows], [y for _, y in rows])
print(json.dumps([hits, peer.predict_one({"age": 2}), peer.predict_proba_one({"age": 2}),
  plain(peer.predict_many([{"age": 2}, {"age": -2}]))]))`,
          served?.url as string
        )
      )
      assert.ok(hits > 70, `${hits}`)
      assert.deepEqual([last, many], ['yes', ['yes', 'no']])
      assert.ok(Math.abs(probabilities.yes + probabilities.no - 1) < 1e-6 && probabilities.yes > 0.5)
      await until(() => served?.peer.status().inputs === 200)
    })

  for (const [name, prefix] of [
    ['with NumPy', ''],
    ['without NumPy', WITHOUT_NUMPY]
  ] as const) {
    it(`takes labels of any kind and shape, and refuses other lengths (${name})`, async function () {
      if (prefix === '' && !hasPython('numpy,pandas')) this.skip()
      await start({ dimension: 5, features: { constant: true, scale: 'none', classNames: ['0', '1'] } })
      const [scores, failures, kinds] = JSON.parse(
        await runPython(
          `${prefix}${HEAD}${TRAINING}
truths = [score(x) > 0 for x in X]
for _ in range(4): peer.partial_fit(X, [str(int(t)) for t in truths])
forms = [[str(int(t)) for t in truths], [int(t) for t in truths], [float(t) for t in truths], truths,
  [[int(t)] for t in truths], (int(t) for t in truths), [f"{int(t)}.0" for t in truths]]
if ${prefix === '' ? 'True' : 'False'}:
  import numpy, pandas
  a = numpy.array(truths)
  forms += [a, a.astype(int).reshape(-1, 1), a.astype("int8").astype(str), pandas.DataFrame({"y": a}), pandas.Series(a.astype(float)).astype("category"),
    pandas.array(a.astype(int), dtype="Int64")]
failures = []
def fails(call):
  try: call()
  except ValueError as error: failures.append(str(error))
ones = [1] * len(X)
fails(lambda: peer.score(X, ones[:10]))
fails(lambda: peer.score(X[:10], ones))
fails(lambda: peer.score(X, [[1, 0]] * len(X)))
fails(lambda: peer.score(X, [math.nan, *ones[1:]]))
fails(lambda: peer.score(X, ["maybe"] * len(X)))
fails(lambda: peer.score([], []))
fails(lambda: peer.score(X, ones, sample_weight=[1, 2]))
fails(lambda: peer.score(X, ones, sample_weight=[-1] * len(X)))
fails(lambda: peer.predict([1, 2, 3, 4]))
fails(lambda: peer.predict([[1, 2, 3, math.inf]]))
fails(lambda: peer.predict([[1, 2, 3]]))
fails(lambda: peer.partial_fit(X, ones[1:]))
print(json.dumps([[peer.score(X, y) for y in forms], failures, sorted({type(label).__name__ for label in plain(peer.predict(X))})]))`,
          served?.url as string
        )
      )
      assert.ok(scores[0] > 0.9, `${scores}`)
      assert.deepEqual(
        scores,
        scores.map(() => scores[0])
      )
      assert.deepEqual(kinds, ['int'])
      assert.match(
        failures.join('\n'),
        new RegExp(
          [
            'X has 400 rows, and y has 10',
            'X has 10 rows, and y has 400',
            'row 0 of y has 2 labels.*',
            'row 0 of y has no label.*',
            "y has none of the classes of the peer \\(0, 1\\), but 'maybe'",
            'X has no rows.*',
            'X has 400 rows, and sample_weight has 2',
            'sample_weight has -1.0.*',
            'row 0 is 1: give X two dimensions.*',
            'row 0 has an infinite value.*',
            '.*3 features, expected 4.*',
            'X has 400 rows, and y has 399'
          ].join('\n')
        )
      )
    })
  }

  it('keeps the zeros of class names, and knows truth values by theirs', async () => {
    await start({ dimension: 5, features: { constant: true, scale: 'none', classNames: ['007', '012'] } })
    const numbered = await run(`
peer.partial_fit([[0, 0, 0, 1]] * 64, ["012"] * 64)
print(json.dumps([plain(peer.classes_), plain(peer.predict([[0, 0, 0, 1]])), peer.score([[0, 0, 0, 1]], ["012"]), peer.score([[0, 0, 0, 1]], [12])]))`)
    assert.deepEqual(numbered, [['007', '012'], ['012'], 1, 1])
    await served?.stop()

    await start({ dimension: 5, features: { constant: true, scale: 'none', classNames: ['False', 'True'] } })
    const truths = await run(`
peer.partial_fit([[0, 0, 0, 1]] * 64, [True] * 64)
print(json.dumps([peer.score([[0, 0, 0, 1]], [True]), peer.score([[0, 0, 0, 1]], [False])]))`)
    assert.deepEqual(truths, [1, 0])
  })

  it('scores numbers whose truth is constant as scikit-learn does', async () => {
    await start({ model: 'linear', features: { constant: true, scale: 'none' }, dimension: 5 })
    assert.deepEqual(
      await run('print(json.dumps([peer.score([[0, 0, 0, 0]] * 2, y) for y in ([0, 0], [3, 3], ["0", "0"])]))'),
      [1, 0, 1]
    )
  })

  it('adds duplicate entries of sparse matrices, whose other entries are 0', async function () {
    if (!hasPython('scipy')) this.skip()
    const program = `
import numpy, scipy.sparse as sparse
for _ in range(4): peer.partial_fit(numpy.eye(4), [${'"no", "yes", "no", "yes"'}])
twice = sparse.csr_matrix(([1.0, 2.0, -1.0], [0, 0, 1], [0, 3]), shape=(1, 4))
entries = sparse.coo_matrix(([1.0, 2.0, -1.0, 0.0], ([0, 0, 0, 0], [0, 0, 1, 3])), shape=(1, 4))
print(json.dumps([plain(peer.predict_proba(X)) for X in (twice.toarray(), twice, entries, twice.tocsc())]))`
    await start()
    const plain = await run(program)
    assert.deepEqual(plain, [plain[0], plain[0], plain[0], plain[0]])
    await served?.stop()

    // The mean of a missing value would be 5.
    const columns = ['a', 'b', 'c', 'd'].map(name => ({ name, kind: 'number', mean: 5, deviation: 2 }))
    const features = { constant: true, scale: 'none', columns, classNames: ['no', 'yes'] }
    await start({ dimension: 5, features } as Partial<LearningSpec>)
    const table = await run(program)
    assert.deepEqual(table, [table[0], table[0], table[0], table[0]])
  })

  it('reaches a peer on loopback past a proxy', async () => {
    await start()
    assert.equal(
      await run(`
import os
for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY"): os.environ[name] = "http://127.0.0.1:1"
os.environ.pop("no_proxy", None)
print(json.dumps(peer.schema()["label"]["kind"]))`),
      'class'
    )
  })

  it("passes scikit-learn's checks of estimators that apply", async function () {
    if (!hasPython('sklearn')) this.skip()
    const general = `estimator_cloneable estimator_repr no_attributes_set_in_init do_not_raise_errors_in_init_or_set_params
      mixin_order parameters_default_constructible get_params_invariance set_params fit1d requires_y_none complex_data
      supervised_y_no_nan estimator_sparse_tag valid_tag_types decision_proba_consistency`
    // The others have rows of another width, or classes that a peer does not have.
    const fitting = {
      2: 'estimators_overwrite_params estimators_fit_returns_self readonly_memmap_input',
      3: `fit_score_takes_y dont_overwrite_parameters estimators_nan_inf estimators_pickle f_contiguous_array_estimator
        dict_unchanged fit2d_predict1d`
    }
    for (const [width, names] of Object.entries(fitting)) {
      const classNames = ['0', '1', '2']
      const features = { constant: false, scale: 'none', classNames } as const
      await start({ model: 'softmax', classes: 3, dimension: Number(width), features })
      const wanted = `${general} ${names}`.split(/\s+/)
      const failed = await run(
        `
import warnings
warnings.simplefilter("ignore")
from sklearn.utils import estimator_checks
wanted = {f"check_{name}" for name in sys.argv[2].split()}
failed = []
for estimator, check in getattr(estimator_checks, "estimator_checks_generator", lambda estimator: estimator_checks.check_estimator(estimator, generate_only=True))(peer):
  name = check.func.__name__
  if name in wanted:
    try: check(estimator)
    except Exception as error: failed.append([name, repr(error)[:200]])
print(json.dumps(failed))`,
        wanted.join(' ')
      )
      assert.deepEqual(failed, [])
      await served?.stop()
    }
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
      const access = '--http cert=http.cert,key=http.key --http-token-file predict.token'
      const port = httpPort(await place.start(`${peerOf('peer')} ${access} --http 0`))
      const text = `import os\nos.chdir(${JSON.stringify(place.folder)})\n${program('secure', port)}`
      assert.match(await runPython(text), /^\['no'\]\nERR_HTTP_ROLE the token has the role predict/)
    })
  })
})
