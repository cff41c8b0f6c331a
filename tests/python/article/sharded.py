import ge.ge_tensor as gt

# 把模型切成多个子图
subgraphs = [
    ("encoder", encoder_model),
    ("decoder", decoder_model)
]

# 分别编译，缓存 OM 文件
for name, model in subgraphs:
    ge.run(model, output=f"{name}.om")
    # OM 文件可以重复加载，不用每次重新编译
