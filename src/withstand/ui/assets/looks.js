"use strict";
// From a Snapshot (withstand.metrics.live) to what the page draws of it. It touches no element.

const Looks = (() => {
  const { UNKNOWN, known, number, count } = Common;
  const percent = (share) => (known(share) ? `${(100 * share).toFixed(share > 0.995 && share < 1 ? 2 : 1)}` : UNKNOWN);
  const UNITS = { ttft: "TTFT", tpot: "TPOT", itl: "ITL", e2el: "E2EL" };

  // Of the plan: "stage 2 of 4, 12 s of 30 s, 120 of 400 requests".
  function place(snapshot) {
    const { current, stages } = snapshot;
    const at = stages.findIndex((stage) => stage.index === current?.index);
    if (at < 0) return known(snapshot.left_s) ? `${number(snapshot.left_s)} s left` : "";
    const stage = stages[at];
    const measured = stages.filter((one) => !one.warmup);
    const where = stage.warmup ? "warm-up" : `stage ${measured.indexOf(stage) + 1} of ${measured.length + (snapshot.to_come ?? 0)}`;
    const parts = [where, known(stage.duration_s) ? `${Math.round(current.elapsed_s)} of ${Math.round(stage.duration_s)} s` : `${Math.round(current.elapsed_s)} s`];
    parts.push(known(stage.planned) ? `${count(current.done)} of ${count(stage.planned)} requests` : `${count(current.done)} requests`);
    if (known(snapshot.left_s)) parts.push(`about ${Math.round(snapshot.left_s)} s left in all`);
    if (current.since === "view") parts.push("figures since this page began to look");
    if (known(current.sampled)) parts.push(`latencies of ${percent(current.sampled)} % of the requests`);
    return parts.join(" · ");
  }

  function asked(snapshot, current) {
    const stage = snapshot.stages.find((one) => one.index === current.index);
    if (known(current.rate_asked)) return `of ${number(current.rate_asked)} asked`;
    return known(stage?.max_concurrency) ? `as fast as ${count(stage.max_concurrency)} at a time go` : "as fast as they go";
  }

  function latency(name, { rolling, whole }) {
    if (!rolling.n && !whole.n) return [];
    const shown = rolling.n ? rolling : whole;
    const note = `p95 ${number(shown.p95)}, p99 ${number(shown.p99)} ms${rolling.n ? "; last 10 s" : ""}`;
    return [[`${UNITS[name]}, median`, number(shown.p50), "ms", note]];
  }

  function between({ low, high }) {
    if (!known(low)) return `below ${number(high)}`;
    return known(high) ? `${number(low)} – ${number(high)}` : `above ${number(low)}`;
  }

  function limitSoFar(limit) {
    const tried = limit.tried ? `${count(limit.tried)} load${limit.tried === 1 ? "" : "s"} tried` : "no load tried so far";
    if (!known(limit.low) && !known(limit.high)) return ["The limit", "not known yet", "", tried];
    return ["The limit lies", between(limit), limit.axis === "rate" ? "req/s" : "at a time", tried];
  }

  function figures(snapshot) {
    const { current, server, limit } = snapshot;
    if (!current) return [];
    const found = [
      ["Answers", number(current.rate_ended), "req/s", asked(snapshot, current)],
      ["Output", number(current.output_tokens_per_s), "tok/s", "last 10 s"],
      ...Object.entries(current.latencies).flatMap(([name, of]) => latency(name, of)),
    ];
    if (known(current.in_flight)) found.push(["In flight", count(current.in_flight), "requests", ""]);
    if (current.failed) found.push(["Failed", count(current.failed), "requests", `of ${count(current.done)}`]);
    if (current.good) found.push(["Within the limits", percent(current.good.whole), "%", known(current.good.rolling) ? `${percent(current.good.rolling)} % in the last 10 s` : ""]);
    const levels = server?.levels ?? {};
    if (known(levels.running)) found.push(["In the engine", number(levels.running), "running", known(levels.waiting) ? `${number(levels.waiting)} waiting` : ""]);
    if (known(levels.kv_share)) found.push(["KV cache", percent(levels.kv_share), "%", ""]);
    if (limit) found.push(limitSoFar(limit));
    return found;
  }

  // The row of the table of stages: what is known so far; rates are of the last 10 s.
  function line({ current }) {
    if (!current) return {};
    const whole = (name, share) => current.latencies[name]?.whole[share];
    return {
      requests: current.done,
      failed: current.since === "view" ? null : current.failed,
      request_rate: current.rate_ended,
      token_rate: current.output_tokens_per_s,
      ttft_p50_ms: whole("ttft", "p50"),
      ttft_p95_ms: whole("ttft", "p95"),
      tpot_p50_ms: whole("tpot", "p50"),
      tpot_p95_ms: whole("tpot", "p95"),
      e2el_p95_ms: whole("e2el", "p95"),
    };
  }

  function courses({ current }) {
    const pace = current?.pace;
    if (!pace?.ended.length) return [];
    // What has not passed yet is not drawn: the last stretch would always seem to fall.
    const whole = (course) => (course.length > 1 ? course.slice(0, -1) : course);
    const xs = whole(pace.ended).map((_, i) => pace.start_s + i * pace.width_s);
    const rates = [whole(pace.ended), ...(known(current.rate_asked) ? [xs.map(() => current.rate_asked)] : [])];
    const drawn = [["Answers" + (rates.length > 1 ? "; asked dashed" : ""), "req/s", xs, rates], ["Output", "tok/s", xs, [whole(pace.output_tokens)]]];
    for (const [name, of] of Object.entries(current.latencies)) if (of.course.some(known)) drawn.push([`${UNITS[name]}, median`, "ms", xs, [whole(of.course)]]);
    if (pace.failed.some((rate) => rate > 0)) drawn.push(["Failed", "req/s", xs, [whole(pace.failed)]]);
    return drawn;
  }

  const doubt = (stage) => (raised) => ({ kind: raised.kind.replaceAll("_", " "), sentence: raised.sentence, remedy: raised.remedy, blocking: raised.blocking, stage });

  function read(snapshot) {
    const { current } = snapshot;
    const stage = snapshot.stages.find((one) => one.index === current?.index);
    return {
      stage: current?.name,
      place: place(snapshot),
      share: stage?.share,
      line: line(snapshot),
      figures: figures(snapshot),
      courses: courses(snapshot),
      errors: current?.errors ?? [],
      doubts: (current?.doubts ?? []).map(doubt(current?.name)),
      stages: snapshot.stages.map((one) => `${one.name} ${one.state}`).join("\n"),
    };
  }

  return { read };
})();
