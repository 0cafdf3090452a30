"use strict";
// One canvas. Frames come as the pixels of the part of the picture that is seen, and are drawn one after the other.
const at = (id) => document.getElementById(id);
const canvas = at("canvas"), pen = canvas.getContext("2d", { alpha: false });
const PARALLEL = 3; // frames that are asked for at once while it plays
const COARSER = 8; // the side of the squares of a coarse picture, in those of the picture that it stands for
const PATIENCE = 60; // milliseconds after which a coarse picture is asked for
let info = null, frame = 0, playing = false, looping = false, fps = 10;
// The centre of the view in pixels of the picture, and pixels of the screen for one of the picture.
let view = { x: 0, y: 0, scale: 1 };
let generation = 0; // grows when the view or the direction changes: what was asked for before is not shown
let ready = new Map(); // frame -> promise of { image, window }
let last = null; // what was drawn last
let named = { n: -1, name: "" }; // a frame, and what its file is called
let coarse = null; // a coarse picture of the same frame, drawn below it; it may show parts that the other one does not
// While it plays: of how many frames one is shown, when the next one is due, and what was seen of late.
let every = false, stride = 1, due = 0, shown = [], starved = 0, spare = 0, looked = 0, calm = 2000;

const clamp = (value, low, high) => Math.max(low, Math.min(high, value));
const ratio = () => window.devicePixelRatio || 1;
const fitScale = () => Math.min(canvas.width / info.width, canvas.height / info.height);

// The part of the picture that is seen, and of how many pixels one is taken.
function part() {
  const step = clamp(Math.floor(1 / view.scale), 1, 256);
  const wide = canvas.width / view.scale, high = canvas.height / view.scale;
  const edge = (low, length, limit) => {
    const from = clamp(Math.floor(low / step) * step, 0, limit - 1);
    const to = clamp(Math.ceil((low + length) / step) * step, from + 1, limit);
    return [from, to - from];
  };
  const [x, w] = edge(view.x - wide / 2, wide, info.width), [y, h] = edge(view.y - high / 2, high, info.height);
  return { x, y, w, h, s: step };
}

async function fetchFrame(n, stride) {
  const p = part();
  const answer = await fetch(`frame?n=${n}&x=${p.x}&y=${p.y}&w=${p.w}&h=${p.h}&s=${p.s}&d=${stride}&f=${Math.round(100 * fps)}`);
  if (!answer.ok) throw new Error(await answer.text());
  return pictureOf(n, p, answer);
}

// A coarse picture of what is seen; null where it would not come sooner than the picture itself.
async function fetchCoarse(n) {
  const p = part();
  const answer = await fetch(`coarse?n=${n}&x=${p.x}&y=${p.y}&w=${p.w}&h=${p.h}&s=${p.s}`);
  return answer.ok ? pictureOf(n, { ...p, s: COARSER * p.s }, answer) : null;
}

async function pictureOf(n, p, answer) {
  const type = answer.headers.get("Content-Type") || "";
  const image = type.startsWith("image/") ? await answer.blob()
    : new ImageData(new Uint8ClampedArray(await answer.arrayBuffer()), Math.ceil(p.w / p.s));
  return { n, part: p, picture: await createImageBitmap(image), lossy: type === "image/jpeg" };
}

function ask(n, stride) {
  if (!ready.has(n)) {
    const entry = { done: null, failed: null };
    entry.promise = fetchFrame(n, stride).then((got) => { entry.done = got; }, (error) => { entry.failed = error; });
    ready.set(n, entry);
  }
  return ready.get(n);
}

function draw() {
  pen.fillStyle = getComputedStyle(document.body).backgroundColor;
  pen.fillRect(0, 0, canvas.width, canvas.height);
  if (coarse) put(coarse, true);
  // Another frame is worse than a coarse picture of this one.
  if (last && !(coarse && coarse.n !== last.n)) put(last, view.scale < 2);
}

function put({ part: p, picture }, isSmooth) {
  const left = canvas.width / 2 + (p.x - view.x) * view.scale, top = canvas.height / 2 + (p.y - view.y) * view.scale;
  pen.imageSmoothingEnabled = isSmooth;
  const size = (count) => count * p.s * view.scale;
  pen.drawImage(picture, left, top, size(picture.width), size(picture.height));
}

function show(got) {
  if (last && last.picture !== got.picture) last.picture.close();
  last = got;
  if (coarse && coarse.n !== got.n) setCoarse(null);
  frame = got.n;
  at("time").value = frame;
  at("where").textContent = `${frame + 1} / ${info.frames}`;
  at("status").textContent = "";
  const now = performance.now();
  shown.push(now);
  while (shown.length && shown[0] < now - 2000) shown.shift();
  draw();
}

function setCoarse(got) {
  if (coarse) coarse.picture.close();
  coarse = got;
}

function fail(error) {
  at("status").textContent = error.message || String(error);
  setPlaying(false);
}

// Forgets what was asked for and shows the frame again.
function refresh() {
  generation += 1;
  for (const entry of ready.values()) entry.promise.then(() => { if (entry.done && entry.done !== last) entry.done.picture.close(); });
  ready = new Map();
  draw();
  at("zoom").textContent = view.scale >= 0.0995 ? `${Math.round(view.scale * 100)} %` : `${(view.scale * 100).toFixed(1)} %`;
  if (!playing) still();
}

let stillTimer = 0, stillBusy = false;
// Shows the frame that stands; while one is on its way, only the newest wish counts.
function still() {
  clearTimeout(stillTimer);
  stillTimer = setTimeout(async () => {
    if (stillBusy || playing) return;
    stillBusy = true;
    const mine = generation, n = frame;
    roughTimer = setTimeout(rough, PATIENCE);
    try {
      const got = await fetchFrame(n, 0);
      if (!playing) show(got);
    } catch (error) { fail(error); }
    stillBusy = false;
    clearTimeout(roughTimer);
    if (!playing && (mine !== generation || n !== frame)) still();
  }, 30);
}

let roughTimer = 0, roughBusy = false;
// Shows a coarse picture while the picture itself is on its way; again, when another part or frame is wanted meanwhile.
async function rough() {
  if (roughBusy || playing) return;
  roughBusy = true;
  const mine = generation, n = frame;
  const got = await fetchCoarse(n).catch(() => null);
  roughBusy = false;
  if (playing || !got) { if (got) got.picture.close(); return; }
  if (n === frame) { setCoarse(got); draw(); } else got.picture.close();
  if (stillBusy && (mine !== generation || n !== frame)) rough();
}

// The frame after this one, of which some may be left out. The last one is shown.
function following(n) {
  const next = n + stride;
  return next < info.frames ? next : looping ? 0 : n + 1 < info.frames ? info.frames - 1 : null;
}

// The frames that come next, in order.
function planned() {
  const plan = [];
  for (let n = following(frame); n !== null && plan.length < PARALLEL && !plan.includes(n); n = following(n)) plan.push(n);
  return plan;
}

function drop(n) {
  const entry = ready.get(n);
  ready.delete(n);
  entry.promise.then(() => { if (entry.done && entry.done !== last) entry.done.picture.close(); });
}

// Leaves out as many frames as come too late, and fewer when they have come early for a while.
function adapt(now) {
  if (every) { stride = 1; return; }
  if (now - looked < 1500) return;
  const time = now - looked, count = shown.filter((at) => at > looked).length;
  if (starved > 0.2 * time && count > 0) {
    const wanted = clamp(Math.ceil(fps * time / 1000 / count), 1, 64);
    // What was tried too early is tried later the next time.
    if (wanted > stride) calm = Math.min(2 * calm, 30000);
    stride = Math.max(stride, wanted);
  }
  spare = starved > 0 ? 0 : spare + time;
  if (stride > 1 && spare > calm) {
    stride -= 1;
    spare = 0;
  }
  looked = now;
  starved = 0;
}

let ticked = 0;
// Called for each picture of the screen while it plays.
function tick(now) {
  if (!playing) return;
  requestAnimationFrame(tick);
  const passed = now - ticked;
  ticked = now;
  const plan = planned();
  if (!plan.length) { setPlaying(false); return; }
  for (const n of [...ready.keys()]) if (!plan.includes(n)) drop(n);
  for (const n of plan) ask(n, stride);
  adapt(now);
  const entry = ready.get(plan[0]);
  if (!entry) return;
  if (entry.failed) { ready.delete(plan[0]); fail(entry.failed); return; }
  if (now < due) return;
  if (!shown.length) looked = now;
  else if (!entry.done) starved += passed;
  if (!entry.done) return;
  const interval = 1000 * Math.max(1, plan[0] - frame) / fps;
  ready.delete(plan[0]);
  // A frame that came late moves the clock.
  due = now - due > interval ? now + interval : due + interval;
  show(entry.done);
}

function setPlaying(value) {
  if (value && !looping && frame + 1 >= info.frames) { frame = 0; }
  if (playing === value) return;
  playing = value;
  at("play").textContent = playing ? "Pause" : "Play";
  due = ticked = looked = performance.now();
  [shown, stride, starved, spare, calm] = [[], 1, 0, 0, 2000];
  if (playing) requestAnimationFrame(tick); else refresh();
}

function go(n) {
  frame = clamp(n, 0, info.frames - 1);
  at("time").value = frame;
  at("where").textContent = `${frame + 1} / ${info.frames}`;
  refresh();
}

function zoomTo(scale, x, y) {
  // The pixel of the picture under (x, y) of the canvas stays where it is.
  const to = clamp(scale, Math.min(1, fitScale()) / 2, 32);
  const px = view.x + (x - canvas.width / 2) / view.scale, py = view.y + (y - canvas.height / 2) / view.scale;
  view = { x: px - (x - canvas.width / 2) / to, y: py - (y - canvas.height / 2) / to, scale: to };
  keepInside();
  refresh();
}

function keepInside() {
  const limit = (value, length, seen) => seen >= length ? length / 2 : clamp(value, seen / 2, length - seen / 2);
  view.x = limit(view.x, info.width, canvas.width / view.scale);
  view.y = limit(view.y, info.height, canvas.height / view.scale);
}

function move(dx, dy) {
  view.x += dx / view.scale;
  view.y += dy / view.scale;
  keepInside();
  refresh();
}

function fit() {
  view = { x: info.width / 2, y: info.height / 2, scale: fitScale() };
  refresh();
}

function resize() {
  const box = at("stage").getBoundingClientRect();
  const wasFit = info && last && Math.abs(view.scale - fitScale()) < 1e-9;
  canvas.width = Math.max(1, Math.round(box.width * ratio()));
  canvas.height = Math.max(1, Math.round(box.height * ratio()));
  if (!info) return;
  if (wasFit) fit(); else { keepInside(); refresh(); }
}

async function corner() {
  try {
    const figures = await (await fetch("figures")).json();
    const n = frame;
    if (named.n !== n) named = { n, name: await (await fetch(`name?n=${n}`)).text() };
    const words = named.name ? [named.name] : [];
    if (playing && shown.length > 1) {
      const rate = 1000 * (shown.length - 1) / (shown[shown.length - 1] - shown[0]);
      words.push(`${rate.toFixed(1)} of ${fps} frames/s`);
      if (stride > 1) words.push(`1 of ${stride} is shown`);
      else if (starved > 100) words.push("waiting for frames");
    }
    if (coarse && !(last && last.n === coarse.n)) words.push("coarse, the picture is on its way");
    else if (last && figures.quality !== null) words.push(last.lossy ? `JPEG ${figures.quality}` : "exact");
    if (figures.bits_per_second > 0 && playing) words.push(`${(figures.bits_per_second / 1e6).toFixed(0)} Mbit/s`);
    if (figures.round_trip_seconds !== null) words.push(`round trip ${(1000 * figures.round_trip_seconds).toFixed(0)} ms`);
    const step = part().s;
    if (step > 1) words.push(`reduced: ${step} x ${step} pixels of the picture are one here`);
    at("corner").textContent = words.join(" · ");
  } catch { at("status").textContent = "hikyaku view has ended."; setPlaying(false); return; }
  setTimeout(corner, 1000);
}

function listen() {
  at("play").onclick = () => setPlaying(!playing);
  at("back").onclick = () => { setPlaying(false); go(frame - 1); };
  at("on").onclick = () => { setPlaying(false); go(frame + 1); };
  at("time").oninput = () => { setPlaying(false); go(Number(at("time").value)); };
  at("every").onchange = () => { every = at("every").checked; };
  at("loop").onchange = () => { looping = at("loop").checked; };
  at("fps").onchange = () => { fps = clamp(Number(at("fps").value) || fps, 0.1, 240); at("fps").value = fps; };
  at("fit").onclick = fit;
  at("one").onclick = () => zoomTo(1, canvas.width / 2, canvas.height / 2);
  at("in").onclick = () => zoomTo(view.scale * 1.5, canvas.width / 2, canvas.height / 2);
  at("out").onclick = () => zoomTo(view.scale / 1.5, canvas.width / 2, canvas.height / 2);
  let from = null;
  canvas.onpointerdown = (event) => { canvas.setPointerCapture(event.pointerId); from = event; canvas.classList.add("drag"); };
  canvas.onpointermove = (event) => {
    if (!from) return;
    const r = ratio();
    move((from.clientX - event.clientX) * r, (from.clientY - event.clientY) * r);
    from = event;
  };
  canvas.onpointerup = canvas.onpointercancel = () => { from = null; canvas.classList.remove("drag"); };
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    const r = ratio();
    zoomTo(view.scale * Math.exp(-event.deltaY / 400), event.offsetX * r, event.offsetY * r);
  }, { passive: false });
  addEventListener("keydown", (event) => {
    if (event.target.matches("input[type=number]") || event.ctrlKey || event.altKey || event.metaKey) return;
    const keys = {
      " ": () => setPlaying(!playing), ",": () => at("back").click(), ".": () => at("on").click(),
      Home: () => go(0), End: () => go(info.frames - 1), f: fit, 1: () => at("one").click(),
      "+": () => at("in").click(), "-": () => at("out").click(), l: () => { at("loop").click(); },
      ArrowLeft: () => move(-canvas.width / 8, 0), ArrowRight: () => move(canvas.width / 8, 0),
      ArrowUp: () => move(0, -canvas.height / 8), ArrowDown: () => move(0, canvas.height / 8),
    };
    if (!keys[event.key]) return;
    event.preventDefault();
    keys[event.key]();
  });
  new ResizeObserver(resize).observe(at("stage"));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
}

async function begin() {
  info = await (await fetch("info")).json();
  document.title = `${info.first} - hikyaku view`;
  fps = info.fps;
  looping = info.is_looping;
  at("fps").value = fps;
  at("loop").checked = looping;
  every = info.late === "every";
  at("every").checked = every;
  at("time").max = info.frames - 1;
  resize();
  if (info.window) {
    const [x, y, w, h] = info.window;
    view = { x: x + w / 2, y: y + h / 2, scale: Math.min(canvas.width / w, canvas.height / h) };
    keepInside();
  } else {
    view = { x: info.width / 2, y: info.height / 2, scale: fitScale() };
  }
  listen();
  refresh();
  corner();
  if (new URLSearchParams(location.search).has("play")) setPlaying(true);
}
begin().catch(fail);
